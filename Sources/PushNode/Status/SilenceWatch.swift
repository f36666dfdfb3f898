/// Decides whether a shard is silent for too long, which a relay that is well by itself does not notice: on a wrong cluster or shard, or
/// without peers there. How long nothing came goes in, what is news comes out.
struct SilenceWatch {
    enum News: Hashable {
        case fellSilent
        case heardAgain
    }

    /// nil: any silence is fine.
    let limit: Duration?
    private(set) var isSilent = false

    init(limit: Duration?) {
        self.limit = limit
    }

    /// - Parameter silence: since the last message, of anybody's; since the start, before the first.
    mutating func look(_ silence: Duration) -> News? {
        let isTooLong = isTooLong(silence)
        guard isTooLong != isSilent else { return nil }
        isSilent = isTooLong
        return isTooLong ? .fellSilent : .heardAgain
    }

    func isTooLong(_ silence: Duration) -> Bool {
        limit.map { silence >= $0 } ?? false
    }
}
