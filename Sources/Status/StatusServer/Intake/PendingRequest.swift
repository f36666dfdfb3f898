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
    /// The number of entries, from the first, that are decided.
    let decidedCount: Int
    /// nil for a request that is committed at once.
    let parts: AwaitedParts?

    /// - Parameters:
    ///   - other: the request from which all other values are copied.
    ///   - results: of the entries from `start` on.
    ///   - tokens: of deliveries that these started.
    private init(_ other: PendingRequest, _ results: [Entry.Result], from start: Int, _ tokens: [DeliveryID: Payer]) {
        self.tokens = other.tokens.merging(tokens) { first, _ in first }
        envelopeID = other.envelopeID
        sender = other.sender
        pubsubTopic = other.pubsubTopic
        messageID = other.messageID
        var entries = other.entries
        for (index, result) in zip(start..<entries.count, results) { entries[index].result = result }
        self.entries = entries
        decidedCount = min(start + results.count, entries.count)
        parts = other.parts
        times = other.times
        hash = other.hash
    }

    /// A request that was not decided: all of its entries fail.
    ///
    /// - Parameter isLarge: whether it is committed in parts.
    init(
        _ request: PushNotificationRequest, _ origin: MessageOrigin, to server: ServerMark? = nil, isLarge: Bool = false,
        hash: MessageHash, pubsubTopic: PubsubTopic, times: MessageTimes?
    ) {
        envelopeID = server.map { SHA256.hash(origin.id + $0.bytes) } ?? origin.id
        sender = origin.sender
        self.pubsubTopic = pubsubTopic
        messageID = request.messageID
        entries = request.requests.map {
            Entry(publicKey: $0.publicKey, installationID: $0.installationID, result: .known(.internalError))
        }
        self.times = times
        self.hash = hash
        tokens = [:]
        decidedCount = 0
        parts = isLarge ? AwaitedParts() : nil
    }

    /// - Parameters:
    ///   - results: of the next entries.
    ///   - tokens: of deliveries that these started.
    func with(_ results: [Entry.Result], tokens: [DeliveryID: Payer] = [:]) -> PendingRequest {
        PendingRequest(self, results, from: decidedCount, tokens)
    }

    /// - Parameter results: of all entries.
    func with(all results: [Entry.Result]) -> PendingRequest { PendingRequest(self, results, from: 0, [:]) }

    var isDecided: Bool { decidedCount == entries.count }

    /// The registrants and device tokens for which gorush accepted a notification.
    func accepted(_ outcomes: [DeliveryID: DeliveryOutcome]) -> [(registrant: KeyHash, token: Payer)] {
        entries.compactMap { entry in
            guard case .waiting(let id) = entry.result, outcomes[id] == .accepted, let token = tokens[id],
                let registrant = KeyHash(bytes: entry.publicKey)
            else { return nil }
            return (registrant, token)
        }
    }

    /// The registrant of the first entry whose access token was valid: one that started a delivery, waits for one, or succeeded; nil without one.
    var firstEntitled: KeyHash? {
        entries.lazy.compactMap { entry in
            switch entry.result {
            case .waiting, .known(nil): KeyHash(bytes: entry.publicKey)
            default: nil
            }
        }.first
    }

    /// The deliveries that the request waits for.
    var deliveries: Set<DeliveryID> { deliveries(since: 0) }

    /// - Parameter start: the index of the first entry that counts.
    func deliveries(since start: Int) -> Set<DeliveryID> {
        Set(
            entries[start...].compactMap { entry in
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
                case .unregistered, .ended: .notRegistered
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
