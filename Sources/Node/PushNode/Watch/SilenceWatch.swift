/// Decides whether a shard has been silent for too long: a relay on a wrong cluster or shard, or without peers there, works without errors but
/// receives nothing. The time since the last message is the input, changes are the output.
struct SilenceWatch {
    enum Change: Hashable {
        case becameSilent
        case recovered
    }

    /// nil if silence is never too long.
    let limit: Duration?
    private(set) var isSilent = false

    /// - Parameter silence: time since the last message on the shard, or since the start before the first.
    mutating func update(_ silence: Duration) -> Change? {
        let isTooLong = isTooLong(silence)
        guard isTooLong != isSilent else { return nil }
        isSilent = isTooLong
        return isTooLong ? .becameSilent : .recovered
    }

    func isTooLong(_ silence: Duration) -> Bool {
        limit.map { silence >= $0 } ?? false
    }
}
