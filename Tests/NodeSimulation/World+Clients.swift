import Core
import StatusProtocol
import TestSupport
import Waku
import WakuCrypto

typealias KeyHashKey = [UInt8]

/// A query, with the client's knowledge when it was sent.
struct AskedQuery {
    let devices: [Device]
    /// Of each device, the acknowledged version.
    let acknowledged: [UInt64]
    var isAnswered = false
}

/// A request, with the client's knowledge when it was first sent.
struct SentRequest {
    let messageID: [UInt8]
    let devices: [Device]
    let acknowledged: [UInt64]
    let envelope: [UInt8]
    let asker: PrivateKey
    let time: Int64
    var attemptCount = 0
    var isAnswered = false
    var isDone = false
}

/// A key under which a client receives messages of the node.
enum Inbox {
    case status(PrivateKey)
    case v01(PrivateKey)
    case acknowledgement(V01.AckKey)

    var tag: TopicTag {
        switch self {
        case .status(let key), .v01(let key): TopicTag(of: StatusTopics.partitioned(key.publicKey))
        case .acknowledgement(let key): key.topic.tag ?? TopicTag(rawValue: 0)
        }
    }

    /// nil if the message is not for this key.
    func open(_ message: WakuMessage) -> PayloadFrame? {
        let plain =
            switch self {
            case .status(let key), .v01(let key): try? ECIES.open(message.payload, with: key)
            case .acknowledgement(let key): try? AESGCM.open(message.payload, key: key.key, layout: .nonceLast)
            }
        return plain.flatMap { try? PayloadFrame(parsing: $0) }
    }
}

/// The clients: they register, change and unregister devices, query for them, and have them notified, and repeat unanswered messages.
extension World {
    func makeClients() {
        for owner in 0..<Int.random(in: 2...5, using: &generator) {
            let key = PrivateKey.generate()
            for installation in 0..<Int.random(in: 1...3, using: &generator) {
                let client = TestClient(
                    of: identity.publicKey, identity: key, installationID: InstallationID("installation-\(owner)-\(installation)"),
                    accessToken: AccessToken("9f1b0c6e-52d3-4b7a-8a57-0d2c6d1e4f\(owner)\(installation)"))
                devices.append(Device(number: devices.count, client: client, pace: generator.pick([1, 1, 8])))
            }
            queryKeys[KeyHash(of: key.publicKey).bytes] = KeyDerivation.topicKey(StatusTopics.query(KeyHash(of: key.publicKey)))
        }
        askers = (0..<Int.random(in: 1...3, using: &generator)).map { _ in .generate() }
        makeAccounts()
        makeSubscribers()
        for key in askers { open(.status(key)) }
        for key in Set(devices.map(\.identity.publicKey)).compactMap({ key in devices.first { $0.identity.publicKey == key }?.identity }) {
            open(.status(key))
        }
        for account in accounts { open(.v01(account.identity)) }
    }

    func beginActivity() {
        for registrant in registrants { scheduler.after(random(1...20)) { [self] in change(registrant) } }
        beginV01Activity()
        beginSessionActivity()
        for asker in askers {
            repeatedly(after: 10...120) { [self] in query(by: asker) }
            repeatedly(after: 10...90) { [self] in request(by: asker) }
        }
    }

    func repeatedly(after seconds: ClosedRange<Double>, _ body: @escaping () -> Void) {
        scheduler.after(random(seconds)) { [self] in
            if !isEnding { body() }
            repeatedly(after: seconds, body)
        }
    }

    func toServer(_ envelope: [UInt8], from sender: PrivateKey, topic: String) -> WakuMessage {
        message(TestPayload.sealed(envelope, signedBy: sender, to: identity.publicKey), topic: topic)
    }

    func message(_ payload: [UInt8], topic: String) -> WakuMessage {
        WakuMessage(payload: payload, contentTopic: ContentTopic(TopicTag(of: topic)), timestamp: wallTime)
    }

    // MARK: Registrations

    private func change(_ registrant: Registrant) {
        if !isEnding, !registrant.isPending {
            let isRegistration = !registrant.isRegistered || chance(0.7)
            if isRegistration, let account = registrant as? V01Client { takeToken(account) }
            let operation = registrant.makeOperation(isRegistration: isRegistration)
            counts.registrations += 1
            send(operation, of: registrant)
            let (sent, version) = (scheduler.now, operation.version)
            if isCalm(since: sent - Duration.seconds(20).nanoseconds, besides: [.gorush, .clock]) {
                scheduler.after(.seconds(3)) { [self] in
                    guard isCalm(since: sent, besides: [.gorush, .clock]), !registrant.mayBeRefused(version) else { return }
                    counts.checks += 1
                    if registrant.acknowledged < version { fail("\(registrant.name): version \(version) not acknowledged within 3 s") }
                }
            }
            // An old registration is published again.
            if chance(0.1), let old = registrant.operations.randomElement(using: &generator) {
                scheduler.after(random(0...60)) { [self] in
                    if (registrant as? SessionSubscriber)?.wasClockWrong != true { send(old, of: registrant) }
                }
            }
        }
        scheduler.after(random(20...300) * registrant.pace) { [self] in change(registrant) }
    }

    private func send(_ operation: Registrant.Operation, of registrant: Registrant) {
        note("\(registrant.name) sends version \(operation.version)\(operation.isRegistration ? "" : ", an end")")
        if let subscriber = registrant as? SessionSubscriber {
            post(operation, of: subscriber)
        } else {
            let topic = generator.pick(registrant.topics)
            send(toServer(operation.envelope, from: registrant.identity, topic: topic)) { registrant.delivered(operation.version) }
        }
        guard operation.version == registrant.operations.count else { return }
        scheduler.after(random(4...12)) { [self] in
            guard registrant.isPending, registrant.operations.count == operation.version else { return }
            // Clients repeat the message, or make a new one.
            if chance(0.5) {
                send(operation, of: registrant)
            } else {
                send(registrant.makeOperation(isRegistration: operation.isRegistration), of: registrant)
            }
        }
    }

    /// The node refused a registration for a reason that is not the client's.
    func refused(_ error: PushNotificationRegistrationResponse.ErrorType?, _ registrant: Registrant) {
        guard error == .internalError else { return fail("\(registrant.name): a valid registration was refused") }
        if isCalm(since: scheduler.now - Duration.seconds(15).nanoseconds, besides: [.relay, .gorush, .clock]) {
            fail("\(registrant.name): an internal error in calm")
        }
    }

    private func registrationAnswered(_ response: PushNotificationRegistrationResponse, to owner: PublicKey) {
        for device in devices where device.client.identity.publicKey == owner {
            guard let operation = device.operation(answeredBy: response.requestID) else { continue }
            note("\(device.name): version \(operation.version): \(response.error.map { "\($0)" } ?? "success")")
            let isNewest = operation.version == device.operations.count
            switch response.error {
            case nil: device.acknowledge(operation.version)
            case .versionMismatch:
                // The server has this version, if the message came twice, or a higher one.
                if isNewest, operation.deliveryCount < 2 { fail("\(device.name): version \(operation.version) refused at first sight") }
            default: refused(response.error, device)
            }
        }
    }

    // MARK: Queries

    private func query(by asker: PrivateKey) {
        let owner = generator.pick(devices).client
        guard let key = queryKeys[owner.keyHash.bytes] else { return }
        let asked = devices.filter { $0.client.keyHash == owner.keyHash }
        counts.queries += 1
        let envelope = MetadataEnvelope.encode(
            .query, payload: PushNotificationQuery(publicKeys: [owner.keyHash]).encoded(), signedBy: asker)
        let id = envelope.id
        queries[id] = AskedQuery(devices: asked, acknowledged: asked.map(\.acknowledged))
        note("query for \(asked.map(\.name).joined(separator: ", "))")
        let frame = PayloadFrame.encode(envelope.bytes, signedBy: asker)
        send(message(AESGCM.seal(frame, key: key, layout: .nonceLast), topic: StatusTopics.query(owner.keyHash)))
        let sent = scheduler.now
        let mustAnswer =
            isCalm(since: sent - Duration.seconds(20).nanoseconds, besides: [.gorush, .clock]) && asked.contains(where: \.isRegistered)
        let versions = asked.map(\.operations.count)
        scheduler.after(.seconds(3)) { [self] in
            guard mustAnswer, isCalm(since: sent, besides: [.gorush, .clock]), versions == asked.map(\.operations.count) else { return }
            counts.checks += 1
            if queries[id]?.isAnswered == false { fail("a query was not answered within 3 s") }
        }
        scheduler.after(.seconds(120)) { [self] in queries[id] = nil }
    }

    private func queryAnswered(_ response: PushNotificationQueryResponse) {
        guard let query = queries[response.messageID] else { return }
        queries[response.messageID]?.isAnswered = true
        note("query answered: \(response.info.map { "\($0.installationID.string) \($0.version)" }.sorted().joined(separator: ", "))")
        for (device, acknowledged) in zip(query.devices, query.acknowledged) {
            let rows = response.info.filter { $0.installationID == device.client.installationID }
            if rows.count > 1 { return fail("\(device.name) is in an answer twice") }
            if !device.mayHave(version: rows.first?.version, since: acknowledged) {
                let found = rows.first.map { "version \($0.version)" } ?? "nothing"
                return fail("\(device.name): the node has \(found), and acknowledged version \(acknowledged) before the query")
            }
            if let row = rows.first, row.accessToken != device.client.accessToken { return fail("\(device.name) has another access token") }
        }
    }

    // MARK: Requests

    private func request(by asker: PrivateKey) {
        let named = (0..<Int.random(in: 1...3, using: &generator)).map { _ in generator.pick(devices) }
        var targets: [Device] = []
        for device in named where !targets.contains(where: { $0 === device }) { targets.append(device) }
        // Several clients ask for the same message, each once: it could not tell the answers apart.
        let recent = requests.values.filter { $0.time > scheduler.now - Duration.seconds(60).nanoseconds }
        let own = Set(requests.values.filter { $0.asker.publicKey == asker.publicKey }.map(\.messageID))
        let shared = Set(recent.map(\.messageID)).subtracting(own).sorted { $0.lexicographicallyPrecedes($1) }
        let messageID = chance(0.2) ? shared.randomElement(using: &generator) ?? generator.bytes(32) : generator.bytes(32)
        let entries = targets.map { device in device.client.notification { $0.message = messageID } }
        let envelope = MetadataEnvelope.encode(
            .request, payload: PushNotificationRequest(requests: entries, messageID: messageID).encoded(), signedBy: asker)
        counts.requests += 1
        let request = SentRequest(
            messageID: messageID, devices: targets, acknowledged: targets.map(\.acknowledged), envelope: envelope.bytes, asker: asker,
            time: scheduler.now)
        requests[envelope.id] = request
        send(request, id: envelope.id)
        sendAgain { [self] in if let request = requests[envelope.id] { send(request, id: envelope.id) } }
        let (sent, id) = (scheduler.now, envelope.id)
        if isCalm(since: sent - Duration.seconds(30).nanoseconds, besides: [.gorush, .clock]) {
            scheduler.after(.milliseconds(3_300)) { [self] in
                guard isCalm(since: sent, besides: [.gorush, .clock]) else { return }
                counts.checks += 1
                if requests[id]?.isAnswered == false { fail("a request was not answered within 3.3 s") }
            }
        }
        scheduler.after(.seconds(2_000)) { [self] in requests[id] = nil }
    }

    /// Sometimes a request is repeated much later, whatever its outcome: no device is notified twice.
    func sendAgain(_ send: @escaping () -> Void) {
        if chance(0.15) { scheduler.after(random(60...1_500), send) }
    }

    private func send(_ request: SentRequest, id: [UInt8]) {
        note("request \(hexString(request.messageID.prefix(4))) for \(request.devices.map(\.name).joined(separator: ", "))")
        requests[id]?.attemptCount += 1
        send(toServer(request.envelope, from: request.asker, topic: StatusTopics.partitioned(identity.publicKey)))
        scheduler.after(random(4...15)) { [self] in
            guard let current = requests[id], !current.isDone, current.attemptCount < 5, !isEnding, chance(0.7) else { return }
            send(current, id: id)
        }
    }

    private func requestAnswered(_ response: PushNotificationResponse, to asker: PublicKey) {
        let matches = requests.filter { $0.value.messageID == response.messageID && $0.value.asker.publicKey == asker }
        guard let (id, request) = matches.first else { return }
        note("request \(hexString(request.messageID.prefix(4))): \(response.reports.map { $0.error.map { "\($0)" } ?? "success" })")
        requests[id]?.isAnswered = true
        guard response.reports.count == request.devices.count else { return fail("an answer lacks reports") }
        if !response.reports.contains(where: { $0.error == .internalError }) { requests[id]?.isDone = true }
        for (index, report) in response.reports.enumerated() {
            let device = request.devices[index]
            let key = PushKey(messageID: request.messageID, device: device.number)
            switch report.error {
            case nil:
                if accepted[key, default: 0] == 0 { fail("\(device.name): success without a notification") }
            case .notRegistered:
                if !device.mayHave(version: nil, since: request.acknowledged[index]) {
                    fail("\(device.name) is registered, and not notified")
                }
            case .wrongToken, .unknown: fail("\(device.name): a valid request got \(report.error.map { "\($0)" } ?? "")")
            case .internalError:
                // Another of several nodes, which has the device, may drop the notification because the device was unregistered meanwhile.
                let mayBeDropped = engine == .cluster && device.mayHave(version: nil, since: request.acknowledged[index])
                if !mayBeDropped, isCalm(since: request.time - Duration.seconds(180).nanoseconds) {
                    fail("\(device.name): an internal error in calm")
                } else if !hasStoreTrouble(since: request.time) {
                    expectNotification(key, of: device, since: request.time)
                    expectOrder(key, of: device, since: request.time)
                }
            }
        }
    }

    /// A notification that was stored is posted before it expires, once gorush works, unless the device changes; at the end of a run within 3 minutes
    /// of the restart.
    func expectNotification(_ key: PushKey, of device: Registrant, since start: Int64) {
        guard device.isRegistered else { return }
        let end = start + Duration.seconds(isEnding ? 289 : 570).nanoseconds
        let versions = device.operations.count
        scheduler.after(.nanoseconds(end - scheduler.now)) { [self] in
            guard device.operations.count == versions,
                isCalm(since: end - Duration.seconds(100).nanoseconds, besides: [.relay, .clock])
            else { return }
            counts.checks += 1
            if accepted[key, default: 0] == 0 { fail("\(device.name): a stored notification was never posted") }
        }
    }

    /// Notifications of later requests are posted after one that is stored.
    private func expectOrder(_ key: PushKey, of device: Device, since start: Int64) {
        guard device.isRegistered, accepted[key, default: 0] == 0 else { return }
        waitingPosts[key.device, default: []].append(
            WaitingPost(
                messageID: key.messageID, time: scheduler.now, end: start + Duration.seconds(370).nanoseconds,
                operationCount: device.operations.count))
    }

    // MARK: Answers

    /// Opens the node's messages for a key from now on.
    @discardableResult
    func open(_ inbox: Inbox) -> (TopicTag, Int) {
        inboxCount += 1
        inboxes[inbox.tag, default: [:]][inboxCount] = inbox
        return (inbox.tag, inboxCount)
    }

    func close(_ place: (tag: TopicTag, number: Int)) { inboxes[place.tag]?[place.number] = nil }

    func receive(_ message: WakuMessage) {
        guard let tag = message.contentTopic.tag, let candidates = inboxes[tag] else { return }
        for (_, inbox) in candidates.sorted(by: { $0.key < $1.key }) {
            guard let frame = inbox.open(message) else { continue }
            switch inbox {
            case .status(let key):
                guard let envelope = try? MetadataEnvelope(parsing: frame.data, in: frame), envelope.sender == identity.publicKey else {
                    continue
                }
                counts.answers += 1
                receive(envelope, to: key.publicKey)
            case .v01, .acknowledgement:
                guard let envelope = try? V01.Envelope(parsing: frame.data, in: frame), envelope.sender == identity.publicKey else {
                    continue
                }
                counts.answers += 1
                if case .v01(let key) = inbox { receiveV01(envelope, to: key.publicKey) }
                if case .acknowledgement(let key) = inbox { receiveAcknowledgement(envelope, under: key) }
            }
        }
    }

    private func receive(_ envelope: MetadataEnvelope, to key: PublicKey) {
        switch envelope.kind {
        case .registrationResponse:
            guard let response = try? PushNotificationRegistrationResponse(parsing: envelope.payload) else { return }
            registrationAnswered(response, to: key)
        case .queryResponse:
            guard let response = try? PushNotificationQueryResponse(parsing: envelope.payload) else { return }
            queryAnswered(response)
        case .response:
            guard let response = try? PushNotificationResponse(parsing: envelope.payload) else { return }
            requestAnswered(response, to: key)
        case .registration, .query, .request: fail("the node sent a client's message")
        }
    }

    // MARK: End

    /// After a calm period: everything is answered, and each device is as its owner knows it. New requests succeed.
    func checkEnd() {
        for registrant in registrants {
            counts.checks += 1
            if registrant.isPending { return fail("\(registrant.name): version \(registrant.operations.count) was never acknowledged") }
        }
        for asker in askers { query(by: asker) }
        queryAccount()
        requestAll()
        sendMessages()
    }

    func requestAll() {
        for asker in askers { request(by: asker) }
        requestAccounts()
    }
}
