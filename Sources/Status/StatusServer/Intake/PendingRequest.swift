import Delivery
import NodeMetrics
import RateLimits
import Core
import StatusProtocol
import Waku
import WakuCrypto

/// A request whose answer waits for deliveries.
struct PendingRequest: Sendable {
    struct Entry: Sendable {
        enum Result: Sendable {
            case known(PushNotificationReport.ErrorType?)
            case waiting(DeliveryID)
        }

        let publicKey: [UInt8]
        let installationID: InstallationID
        var result: Result
    }

    /// Identifies the request: the envelope's id, hashed with the mark of the identity that it was sent to, if that has one.
    let envelopeID: [UInt8]
    let sender: PublicKey
    let pubsubTopic: PubsubTopic
    let messageID: [UInt8]
    let entries: [Entry]
    let times: MessageTimes?
    /// The device tokens of deliveries that this request started.
    let tokens: [DeliveryID: Payer]
    /// The hash of its Waku message.
    let hash: MessageHash

    /// - Parameters:
    ///   - other: the request from which all other values are copied.
    ///   - tokens: see ``tokens``.
    private init(_ other: PendingRequest, _ results: [Entry.Result], _ tokens: [DeliveryID: Payer]) {
        self.tokens = tokens
        envelopeID = other.envelopeID
        sender = other.sender
        pubsubTopic = other.pubsubTopic
        messageID = other.messageID
        entries = zip(other.entries, results).map { Entry(publicKey: $0.publicKey, installationID: $0.installationID, result: $1) }
        times = other.times
        hash = other.hash
    }

    /// A request that was not decided: all of its entries fail.
    init(
        _ request: PushNotificationRequest, _ envelope: MetadataEnvelope, to server: ServerMark? = nil, hash: MessageHash,
        pubsubTopic: PubsubTopic, times: MessageTimes?
    ) {
        envelopeID = server.map { SHA256.hash(envelope.id + $0.bytes) } ?? envelope.id
        sender = envelope.sender
        self.pubsubTopic = pubsubTopic
        messageID = request.messageID
        entries = request.requests.map {
            Entry(publicKey: $0.publicKey, installationID: $0.installationID, result: .known(.internalError))
        }
        self.times = times
        self.hash = hash
        tokens = [:]
    }

    func with(_ results: [Entry.Result], tokens: [DeliveryID: Payer] = [:]) -> PendingRequest { PendingRequest(self, results, tokens) }

    /// The registrants and device tokens for which gorush accepted a notification.
    func accepted(_ outcomes: [DeliveryID: DeliveryOutcome]) -> [(registrant: KeyHash, token: Payer)] {
        entries.compactMap { entry in
            guard case .waiting(let id) = entry.result, outcomes[id] == .accepted, let token = tokens[id],
                let registrant = KeyHash(bytes: entry.publicKey)
            else { return nil }
            return (registrant, token)
        }
    }

    /// The deliveries that the request waits for.
    var deliveries: Set<DeliveryID> {
        Set(
            entries.compactMap { entry in
                if case .waiting(let delivery) = entry.result { delivery } else { nil }
            })
    }

    /// The answer to be stored; nil if a delivery is unfinished, or may succeed when the request is repeated.
    var finalCodes: [UInt8]? { AnswerCode.final(errors([:])) }

    /// The reports for the sender.
    ///
    /// - Parameter outcomes: the outcomes of awaited deliveries; deliveries without an outcome are reported as failed.
    func errors(_ outcomes: [DeliveryID: DeliveryOutcome]) -> [PushNotificationReport.ErrorType?] {
        entries.map { entry in
            switch entry.result {
            case .known(let error): error
            case .waiting(let delivery):
                switch outcomes[delivery] {
                case .accepted: nil
                case .unregistered: .notRegistered
                case .failed, nil: .internalError
                }
            }
        }
    }

    func response(_ errors: [PushNotificationReport.ErrorType?]) -> PushNotificationResponse {
        let reports = zip(entries, errors).map { entry, error in
            PushNotificationReport(error: error, publicKey: entry.publicKey, installationID: entry.installationID)
        }
        return PushNotificationResponse(messageID: messageID, reports: reports)
    }
}

/// The stored form of a report: one byte.
enum AnswerCode {
    private static let success: UInt8 = 0xFF

    static func code(_ error: PushNotificationReport.ErrorType?) -> UInt8 {
        error.map { UInt8($0.rawValue) } ?? success
    }

    static func error(_ code: UInt8) -> PushNotificationReport.ErrorType? {
        code == success ? nil : PushNotificationReport.ErrorType(rawValue: UInt32(code)) ?? .unknown
    }

    /// nil if an entry may succeed when the request is repeated, so that the answer is not final.
    static func final(_ errors: [PushNotificationReport.ErrorType?]) -> [UInt8]? {
        errors.contains(.internalError) ? nil : errors.map(code)
    }
}
