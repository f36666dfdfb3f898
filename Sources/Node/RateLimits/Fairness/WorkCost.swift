/// The kinds of work that senders cause, and their prices. Admission reads the prices here: the default totals of ``Limits``, and the turns of requests
/// over HTTP. Memory and bytes sent have no price by kind: they are counted as they are.
package enum WorkKind: String, CaseIterable, Sendable {
    case openMessage = "open_message"
    case registration
    case query
    case answer
    case deriveTopicKey = "derive_topic_key"
    case request
    case notification
    case checkSignature = "check_signature"
    case subscription
    case onionRequest = "onion_request"
    case storageMessage = "storage_message"

    /// The CPU time of one piece of work of typical size in microseconds, on the machine of the benchmarks (`bench`): a release build, one core.
    package var cpuMicroseconds: Int {
        switch self {
        case .openMessage: 150
        case .registration: 550
        case .query: 130
        case .answer: 100
        // Without the processor's SHA instructions; with them about 7 ms.
        case .deriveTopicKey: 12_000
        case .request: 200
        case .notification: 190
        case .checkSignature: 205
        case .subscription: 400
        case .onionRequest: 200
        case .storageMessage: 60
        }
    }
}

extension RateLimit {
    /// The rate at which some work takes three quarters of a core, to one digit, with a burst of ten seconds.
    static func affordable(_ work: WorkKind...) -> RateLimit {
        let rate = 750_000 / work.reduce(0) { $0 + $1.cpuMicroseconds }
        let digit = String(rate).dropFirst().reduce(1) { place, _ in place * 10 }
        let count = (rate + digit / 2) / digit * digit
        return RateLimit(count, per: .second, burst: 10 * count)
    }
}
