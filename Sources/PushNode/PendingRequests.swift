import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// A request whose answer waits for deliveries.
struct PendingRequest: Sendable {
    let envelopeID: [UInt8]
    let sender: PublicKey
    let pubsubTopic: PubsubTopic
    let messageID: [UInt8]
    let entries: [Entry]

    struct Entry: Sendable {
        let publicKey: [UInt8]
        let installationID: InstallationID
        var result: Result

        enum Result: Sendable {
            case known(PushNotificationReport.ErrorType?)
            case waiting(DeliveryID)
        }
    }
}

/// Requests that wait for deliveries, as a value: outcomes come in, requests that are complete go out.
struct PendingRequestTable {
    private var requests: [Int: (request: PendingRequest, entries: [PendingRequest.Entry], missing: Int)] = [:]
    private var byDelivery: [DeliveryID: Set<Int>] = [:]
    private var nextID = 0

    var isEmpty: Bool { requests.isEmpty }

    /// Returns its id, by which it can be ended.
    mutating func add(_ request: PendingRequest) -> Int {
        defer { nextID += 1 }
        var missing = 0
        for case .waiting(let delivery) in request.entries.map(\.result) {
            missing += 1
            byDelivery[delivery, default: []].insert(nextID)
        }
        requests[nextID] = (request, request.entries, missing)
        return nextID
    }

    /// A delivery ended. Returns the requests that are complete now, with a result for each entry.
    mutating func resolve(_ delivery: DeliveryID, as error: PushNotificationReport.ErrorType?) -> [Finished] {
        var finished: [Finished] = []
        for id in byDelivery.removeValue(forKey: delivery) ?? [] {
            guard var waiting = requests[id] else { continue }
            for index in waiting.entries.indices {
                guard case .waiting(delivery) = waiting.entries[index].result else { continue }
                waiting.entries[index].result = .known(error)
                waiting.missing -= 1
            }
            requests[id] = waiting
            if waiting.missing == 0, let done = end(id) { finished.append(done) }
        }
        return finished
    }

    /// Time is up: what still waits failed, as far as the asker is told. nil when the request is complete already.
    mutating func end(_ id: Int) -> Finished? {
        guard let (request, entries, _) = requests.removeValue(forKey: id) else { return nil }
        let errors = entries.map { entry -> PushNotificationReport.ErrorType? in
            guard case .waiting(let delivery) = entry.result else {
                guard case .known(let error) = entry.result else { return nil }
                return error
            }
            byDelivery[delivery]?.remove(id)
            if byDelivery[delivery]?.isEmpty == true { byDelivery[delivery] = nil }
            return .internalError
        }
        return Finished(request: request, errors: errors)
    }

    struct Finished: Sendable {
        let request: PendingRequest
        let errors: [PushNotificationReport.ErrorType?]
    }
}

extension PendingRequest {
    /// What is to be remembered; nil while something is open.
    var finalCodes: [UInt8]? {
        let errors = entries.map { entry -> PushNotificationReport.ErrorType? in
            guard case .known(let error) = entry.result else { return .internalError }
            return error
        }
        return AnswerCode.final(errors)
    }
}

extension PendingRequestTable.Finished {
    var answer: Answer {
        let reports = zip(request.entries, errors).map { entry, error in
            PushNotificationReport(error: error, publicKey: entry.publicKey, installationID: entry.installationID)
        }
        return Answer(
            kind: .response, payload: PushNotificationResponse(messageID: request.messageID, reports: reports).encoded(),
            recipient: request.sender, pubsubTopic: request.pubsubTopic)
    }
}
