import NodeMetrics
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
    var entries: [Entry]
    var times: MessageTimes?
    /// The message that it came in.
    var hash: MessageHash?

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

/// Requests that wait for deliveries, as a value: outcomes and time come in, requests that are complete go out.
struct PendingRequestTable {
    private var requests: [Int: (request: PendingRequest, entries: [PendingRequest.Entry], missing: Int)] = [:]
    private var byDelivery: [DeliveryID: [Int]] = [:]
    /// In the order of their deadlines, from the first that still counts on. Complete ones stay until their deadline.
    private var deadlines: [(time: Timestamp, id: Int)] = []
    private var firstDeadline = 0
    private var nextID = 0

    var isEmpty: Bool { requests.isEmpty }
    var count: Int { requests.count }

    /// Of one that may be complete by now; nil for none.
    var nextDeadline: Timestamp? { firstDeadline < deadlines.count ? deadlines[firstDeadline].time : nil }

    /// - Parameter deadline: not before that of any request that was added earlier.
    mutating func add(_ request: PendingRequest, deadline: Timestamp) {
        defer { nextID += 1 }
        var missing = 0
        for case .waiting(let delivery) in request.entries.map(\.result) {
            missing += 1
            if byDelivery[delivery]?.last != nextID { byDelivery[delivery, default: []].append(nextID) }
        }
        requests[nextID] = (request, request.entries, missing)
        deadlines.append((max(deadline, deadlines.last?.time ?? deadline), nextID))
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

    /// Time is up for those with deadlines up to now: what still waits failed, as far as their askers are told.
    mutating func end(before now: Timestamp) -> [Finished] {
        var finished: [Finished] = []
        while firstDeadline < deadlines.count, deadlines[firstDeadline].time <= now {
            if let done = end(deadlines[firstDeadline].id) { finished.append(done) }
            firstDeadline += 1
        }
        // Moved to the front now and then, at no cost for each.
        if firstDeadline > 1000, firstDeadline * 2 > deadlines.count {
            deadlines.removeFirst(firstDeadline)
            firstDeadline = 0
        }
        return finished
    }

    /// What requests wait for.
    var awaited: some Collection<DeliveryID> { byDelivery.keys }

    /// nil when it is complete already.
    private mutating func end(_ id: Int) -> Finished? {
        guard let (request, entries, _) = requests.removeValue(forKey: id) else { return nil }
        for case .waiting(let delivery) in entries.map(\.result) {
            byDelivery[delivery]?.removeAll { $0 == id }
            if byDelivery[delivery]?.isEmpty == true { byDelivery[delivery] = nil }
        }
        return Finished(request: request, errors: entries.map(\.error))
    }

    struct Finished: Sendable {
        let request: PendingRequest
        let errors: [PushNotificationReport.ErrorType?]

        init(request: PendingRequest, errors: [PushNotificationReport.ErrorType?]) {
            self.request = request
            self.errors = errors
        }

        /// What it waits for has failed, as far as its asker is told.
        init(failing request: PendingRequest) {
            self.init(request: request, errors: request.entries.map(\.error))
        }
    }
}

extension PendingRequest.Entry {
    /// nil when nothing is waited for.
    var delivery: DeliveryID? {
        if case .waiting(let delivery) = result { delivery } else { nil }
    }

    /// As it is told when time is up.
    var error: PushNotificationReport.ErrorType? {
        if case .known(let error) = result { error } else { .internalError }
    }
}

extension PendingRequest {
    var isWaiting: Bool { entries.contains { $0.delivery != nil } }

    /// What is to be remembered; nil while something is open.
    var finalCodes: [UInt8]? { AnswerCode.final(entries.map(\.error)) }
}

extension PendingRequestTable.Finished {
    var answer: Answer {
        let reports = zip(request.entries, errors).map { entry, error in
            PushNotificationReport(error: error, publicKey: entry.publicKey, installationID: entry.installationID)
        }
        return Answer(
            kind: .response, payload: PushNotificationResponse(messageID: request.messageID, reports: reports).encoded(),
            recipient: request.sender, pubsubTopic: request.pubsubTopic, times: request.times, question: request.hash)
    }
}
