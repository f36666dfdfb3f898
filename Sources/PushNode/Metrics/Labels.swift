import Gorush
import NodeMetrics
import StatusProtocol
import Waku

/// When a batch came in.
struct Arrival: Sendable {
    let clock: Timestamp
    let instant = ContinuousClock.now

    func times(of message: WakuMessage) -> MessageTimes {
        MessageTimes(
            received: instant, delay: message.timestamp.rawValue > 0 ? max(.zero, clock.since(message.timestamp)) : nil)
    }
}

extension Work {
    var kind: KindLabel {
        switch task {
        case .registration: .registration
        case .query: .query
        case .request: .request
        }
    }
}

extension Answer {
    var kindOfQuestion: KindLabel {
        switch kind {
        case .registration, .registrationResponse: .registration
        case .query, .queryResponse: .query
        case .request, .response: .request
        }
    }
}

extension ReportLabel {
    init(_ error: PushNotificationReport.ErrorType?) {
        switch error {
        case nil: self = .success
        case .unknown?: self = .unknownType
        case .wrongToken?: self = .wrongToken
        case .internalError?: self = .internalError
        case .notRegistered?: self = .notRegistered
        }
    }
}

extension PostClassLabel {
    init(_ result: PostResult) {
        switch result.outcome {
        case .accepted, .notPosted: self = .accepted
        case .refused: self = .refused
        case .failed: self = result.isOperatorsMistake ? .misconfigured : .failed
        }
    }
}

extension Counters {
    /// - Parameters:
    ///   - works: Messages that were decrypted and are valid.
    ///   - others: Messages that were decrypted and turned out invalid.
    func opened(_ works: [Work], others: Int) {
        opened(works.lazy.map { (kind: $0.kind, times: $0.times) }, others: others)
    }

    /// A post ended.
    func posted(_ result: PostResult, took: Duration) {
        record(took, in: .postTime)
        increment(.posts, PostClassLabel(result), StatusLabel(result.status))
    }
}
