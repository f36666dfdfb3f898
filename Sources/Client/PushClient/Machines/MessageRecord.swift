import StatusProtocol
import Core
import WakuCrypto

/// A message to notify devices of, with the state of each device.
struct MessageRecord: Codable, Hashable, Sendable {
    struct Recipient: Codable, Hashable, Sendable {
        @Stored var registrant: PublicKey
        /// Empty: the most recently active devices, once some are known.
        @Stored var installations: [InstallationID]
        /// Present until devices are chosen.
        var search: Search?

        struct Search: Codable, Hashable, Sendable {
            var round = 1
            var wasQueried = false
            var restsUntil: StoredTime?
            /// Whether every server that was queried answered: only the devices in these answers are registered. nil before the query ended.
            var wasAnswered: Bool?
            /// Set while look-ups and queries are under way.
            var wait: Wait?

            enum Wait: Codable, Hashable, Sendable {
                case until(StoredTime)
                case over
            }

            /// Whether the time to wait for sources is over. It begins with the first call.
            mutating func isWaitOver(at now: Timestamp) -> Bool {
                switch wait {
                case .over: break
                case .until(let end): if end.time <= now { wait = .over }
                case nil: wait = .until(StoredTime(now + NotificationMachine.sourceLimit))
                }
                return wait == .over
            }
        }
    }

    /// One device of a recipient.
    ///
    ///     ready ──(token)──▶ asking ──(success)──▶ done
    ///       ▲ ▲                │ └─(INTERNAL_ERROR)─▶ waiting to ask the same server again
    ///       │ └─(no answer: next server)
    ///       └──── resting ◀──(every server was asked: end of the round)
    struct Device: Codable, Hashable, Sendable {
        enum State: Codable, Hashable, Sendable {
            case ready
            /// A query about the registrant is pending.
            case querying
            case asking(StoredServer, deadline: StoredTime?)
            case askingAgain(StoredServer, at: StoredTime)
            case resting(until: StoredTime)
            case done(Outcome)
        }

        @Stored var registrant: PublicKey
        @Stored var installationID: InstallationID
        var state = State.ready
        var round = 1
        @Stored var tried: [PublicKey] = []
        @Stored var askedAgain: [PublicKey] = []
        var wasQueried = false
        /// A server refused the token.
        var mustQuery = false
        /// A server refused the token, and the registrant was queried again, which happens only once. Used by version 0.1 only.
        var wasRefused: Bool?
        /// The server of the request that was pending when the process ended.
        @Stored var preferred: PublicKey? = nil

        var isDone: Bool { if case .done = state { true } else { false } }
    }

    enum Outcome: Codable, Hashable, Sendable {
        case notified(by: StoredServer)
        case notAllowed
        /// - Parameter exact: see `GiveUpReason.former`.
        case gaveUp(DeviceOutcome.GiveUpReason, exact: String?)

        static func gaveUp(_ reason: DeviceOutcome.GiveUpReason) -> Self { .gaveUp(reason.former, exact: reason.exact) }
    }

    @StoredBytes var messageID: [UInt8]
    @StoredBytes var chatHash: [UInt8]
    @StoredBytes var authorHash: [UInt8]
    var kind: Int32
    /// Empty once nothing more is to be sent.
    @StoredBytes var content: [UInt8]
    @Stored var begun: Timestamp
    var recipients: [Recipient]
    var devices: [Device] = []
    /// Recipients for which no device was found.
    var failed: [Failed] = []
    /// See ``MachineRecord/storedAt``.
    var storedAt: StoredTime?

    struct Failed: Codable, Hashable, Sendable {
        @Stored var registrant: PublicKey
        /// See `GiveUpReason.former`.
        private let former: DeviceOutcome.GiveUpReason
        private let exact: String?

        var reason: DeviceOutcome.GiveUpReason { former.orExact(exact) }

        private enum CodingKeys: String, CodingKey {
            case registrant, exact
            case former = "reason"
        }

        init(registrant: PublicKey, reason: DeviceOutcome.GiveUpReason) {
            _registrant = Stored(wrappedValue: registrant)
            (former, exact) = (reason.former, reason.exact)
        }
    }

    var isFinished: Bool { recipients.allSatisfy { $0.search == nil } && devices.allSatisfy(\.isDone) }

    /// Called after a start, when no request or query is pending: begins interrupted ones again.
    mutating func resume() {
        for index in recipients.indices where recipients[index].search?.restsUntil == nil {
            recipients[index].search?.wasQueried = false
            recipients[index].search?.wait = nil
        }
        for index in devices.indices {
            switch devices[index].state {
            case .asking(let server, _):
                // The same server knows whether it handled the request, so it is asked first.
                devices[index].preferred = server.key
                devices[index].state = .ready
            case .querying:
                devices[index].wasQueried = false
                devices[index].state = .ready
            case .ready, .askingAgain, .resting, .done: break
            }
        }
    }

    var outcomes: [DeviceOutcome] {
        devices.compactMap { device in
            guard case .done(let outcome) = device.state else { return nil }
            return DeviceOutcome(registrant: device.registrant, installationID: device.installationID, result: outcome.result)
        } + failed.map { DeviceOutcome(registrant: $0.registrant, installationID: nil, result: .gaveUp($0.reason)) }
    }
}

struct StoredServer: Codable, Hashable, Sendable {
    @Stored var key: PublicKey
    init(_ key: PublicKey) { _key = Stored(wrappedValue: key) }
}

extension MessageRecord.Outcome {
    var result: DeviceOutcome.Result {
        switch self {
        case .notified(let server): .notified(by: server.key)
        case .notAllowed: .notAllowed
        case .gaveUp(let reason, let exact): .gaveUp(reason.orExact(exact))
        }
    }
}

/// Earlier releases of the library don't know all reasons, and can't read a record with another one.
extension DeviceOutcome.GiveUpReason {
    /// The reason of the first release that comes closest. It is stored, with the exact one beside it, which that release does not read.
    fileprivate var former: Self {
        switch self {
        case .notRegistered: .noDevice
        case .noServerKnown: .noServer
        case .noDevice, .noServer, .expired, .cancelled: self
        }
    }

    fileprivate var exact: String? { former == self ? nil : rawValue }

    fileprivate func orExact(_ exact: String?) -> Self { exact.flatMap(Self.init) ?? self }
}

extension MessageRecord.Device {
    mutating func noteTime(at now: Timestamp, isQuerying: Bool) {
        switch state {
        case .asking(let server, let deadline?) where deadline.time <= now:
            tried.append(server.key)
            state = .ready
        case .askingAgain(let server, let at) where at.time <= now:
            preferred = server.key
            state = .ready
        case .resting(let until) where until.time <= now:
            state = .ready
        case .querying where !isQuerying:
            state = .ready
        case .ready, .querying, .asking, .askingAgain, .resting, .done: break
        }
    }

    /// Called when no server is left to ask: pauses until the next round, or gives up after the last one.
    ///
    /// - Parameter jitter: A random number from 0 to 1.
    mutating func endRound(at now: Timestamp, jitter: Double) {
        guard round < NotificationMachine.roundLimit else {
            state = .done(.gaveUp(.noServer))
            return
        }
        let pause = RetryDelay.after(failures: round, base: NotificationMachine.pauseBase, jitter: jitter)
        round += 1
        tried = []
        askedAgain = []
        wasQueried = wasRefused == true
        state = .resting(until: StoredTime(now + pause))
    }
}
