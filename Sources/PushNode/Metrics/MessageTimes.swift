import StatusProtocol
import Waku

/// From when on it is measured how long a message takes.
struct MessageTimes: Sendable {
    let received: ContinuousClock.Instant
    /// From the sender's timestamp to its receipt, by two clocks: not below zero. nil when the sender told no time.
    let delay: Duration?
}

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
