import Core
import Delivery
import StatusProtocol
import StatusV01Server
import TestSupport
import Waku
import WakuCrypto

/// A query of version 0.1, with the client's knowledge when it was sent.
struct V01AskedQuery {
    let account: V01Client
    let acknowledged: UInt64
    var isAnswered = false
}

/// A request of version 0.1, with the clients' knowledge when it was first sent.
struct V01SentRequest {
    let messageID: [UInt8]
    let chat: [UInt8]
    let tokens: [AccessToken]
    /// Of each account, the acknowledged version, and the number of versions sent.
    let acknowledged: [UInt64]
    let versions: [Int]
    let payload: [UInt8]
    let asker: PrivateKey
    /// Whether the asker's name is in it; the Waku payload is signed in any case.
    let isEnvelopeSigned: Bool
    let time: Int64
    var attemptCount = 0
    var isAnswered = false
    var isDone = false
}

/// The clients of version 0.1.
extension World {
    func makeAccounts() {
        for number in 0..<Int.random(in: 1...3, using: &generator) {
            accounts.append(V01Client(number: number, of: identity.publicKey, world: self, pace: generator.pick([1, 2, 8])))
        }
    }

    func beginV01Activity() {
        repeatedly(after: 10...150) { [self] in queryAccount() }
        repeatedly(after: 10...90) { [self] in requestAccounts() }
    }

    private func toAccountServer(_ envelope: [UInt8], from sender: PrivateKey) -> WakuMessage {
        toServer(envelope, from: sender, topic: V01.serverTopic(identity.publicKey))
    }

    // MARK: Registrations

    /// Sometimes an account registers the access token of another one.
    func takeToken(_ account: V01Client) {
        guard chance(0.1) else { return }
        account.takenToken = accounts.filter { $0 !== account && $0.isRegistered }.randomElement(using: &generator)?.currentToken
    }

    private func registrationAnswered(_ response: V01.RegistrationResponse, to owner: PublicKey) {
        guard let account = accounts.first(where: { $0.identity.publicKey == owner }),
            let operation = account.operation(answeredBy: response.requestID)
        else { return }
        note("\(account.name): version \(operation.version): \(response.error.map { "\($0)" } ?? "success")")
        switch response.error {
        case nil:
            if operation.isRegistration, account.isTaken(operation.version) {
                fail("\(account.name): version \(operation.version) was stored with the access token of another account")
            }
            account.acknowledge(operation.version)
        case .malformedMessage:
            guard operation.isRegistration, account.mayBeRefused(operation.version) else {
                return fail("\(account.name): a valid registration was refused")
            }
            account.tokenRefused()
        case .versionMismatch:
            let isNewest = operation.version == account.operations.count
            if isNewest, operation.deliveryCount < 2 { fail("\(account.name): version \(operation.version) refused at first sight") }
            let stored = response.preferences
            let isRight =
                account.mayHave(version: stored?.version, since: operation.acknowledgedBefore)
                && stored.map { $0.devices == account.record(ofVersion: $0.version).devices } ?? true
            if !isRight { fail("\(account.name): a refusal has the record of version \(stored?.version ?? 0)") }
        default: refused(response.error, account)
        }
    }

    // MARK: Queries

    func queryAccount() {
        let account = generator.pick(accounts)
        counts.queries += 1
        // No id joins an answer to a query, so each has a key of its own.
        let asker = PrivateKey.generate()
        let envelope = V01.Envelope.encode(.query, payload: V01.Query([account.keyHash]).encoded(), signedBy: asker)
        let inbox = open(.v01(asker))
        v01Queries[asker.publicKey] = V01AskedQuery(account: account, acknowledged: account.acknowledged)
        note("query for \(account.name)")
        send(toAccountServer(envelope, from: asker))
        let (sent, versions) = (scheduler.now, account.operations.count)
        let hasRows = account.isRegistered && !account.rows(ofVersion: account.acknowledged).isEmpty
        let mustAnswer = hasRows && isCalm(since: sent - Duration.seconds(20).nanoseconds, besides: [.gorush, .clock])
        scheduler.after(.seconds(3)) { [self] in
            guard mustAnswer, isCalm(since: sent, besides: [.gorush, .clock]), versions == account.operations.count else { return }
            counts.checks += 1
            if v01Queries[asker.publicKey]?.isAnswered == false { fail("a query for \(account.name) was not answered within 3 s") }
        }
        scheduler.after(.seconds(300)) { [self] in
            v01Queries[asker.publicKey] = nil
            close(inbox)
        }
    }

    private func queryAnswered(_ response: V01.QueryResponse, to asker: PublicKey) {
        guard let query = v01Queries[asker] else { return }
        v01Queries[asker]?.isAnswered = true
        let account = query.account
        let rows = response.info.map { V01Client.row($0.installationID, $0.accessToken, $0.encryptedAccessTokens) }
        note("query for \(account.name) answered: \(response.info.map(\.installationID.string).joined(separator: ", "))")
        let isRight =
            response.info.allSatisfy { $0.publicKey == account.keyHash.bytes }
            && account.possible(since: query.acknowledged).contains { version in
                version.map { account.rows(ofVersion: $0) == rows } ?? rows.isEmpty
            }
        if !isRight { fail("\(account.name): an answer has rows of none of the versions from \(query.acknowledged)") }
    }

    // MARK: Requests

    func requestAccounts() {
        let named = (0..<Int.random(in: 1...2, using: &generator)).compactMap { _ in generator.pick(accounts).currentToken }
        guard !named.isEmpty else { return }
        let recent = v01Requests.values.filter { $0.time > scheduler.now - Duration.seconds(60).nanoseconds }
        let shared = recent.min { $0.messageID.lexicographicallyPrecedes($1.messageID) }.flatMap { chance(0.2) ? $0 : nil }
        let chat = shared?.chat ?? generator.pick([V01Client.quietChat, V01.chatHash("a chat"), V01.chatHash("another chat")])
        let messageID = shared?.messageID ?? generator.bytes(32)
        let key = generator.bytes(32)
        guard let ackKey = V01.AckKey(chance(0.3) ? Array("0x\(hexString(key))".utf8) : key) else { return fail("no key") }
        let inbox = open(.acknowledgement(ackKey))
        let entries = named.map { V01.PushNotification(accessToken: $0, chatID: chat) }
        let payload = V01.Request(
            requests: entries, message: messageID, messageID: Array(hexString(messageID).utf8), ackKey: ackKey.named
        ).encoded()
        counts.requests += 1
        v01Requests[ackKey.named] = V01SentRequest(
            messageID: messageID, chat: chat, tokens: named, acknowledged: accounts.map(\.acknowledged),
            versions: accounts.map(\.operations.count), payload: payload, asker: generator.pick(askers),
            isEnvelopeSigned: chance(0.8), time: scheduler.now)
        sendRequest(ackKey.named)
        sendAgain { [self] in sendRequest(ackKey.named) }
        let sent = scheduler.now
        if isCalm(since: sent - Duration.seconds(30).nanoseconds, besides: [.gorush, .clock]) {
            scheduler.after(.milliseconds(3_300)) { [self] in
                guard isCalm(since: sent, besides: [.gorush, .clock]) else { return }
                counts.checks += 1
                if v01Requests[ackKey.named]?.isAnswered == false { fail("a request was not acknowledged within 3.3 s") }
            }
        }
        scheduler.after(.seconds(2_000)) { [self] in
            v01Requests[ackKey.named] = nil
            close(inbox)
        }
    }

    private func sendRequest(_ id: [UInt8]) {
        guard let request = v01Requests[id] else { return }
        note("request \(hexString(request.messageID.prefix(4))) for \(request.tokens.count) accounts")
        v01Requests[id]?.attemptCount += 1
        let signer = request.isEnvelopeSigned ? request.asker : nil
        let envelope = V01.Envelope.encode(.request, payload: request.payload, signedBy: signer)
        send(toAccountServer(envelope, from: request.asker))
        scheduler.after(random(4...15)) { [self] in
            guard let current = v01Requests[id], !current.isDone, current.attemptCount < 5, !isEnding, chance(0.7) else { return }
            sendRequest(id)
        }
    }

    private func acknowledged(_ acknowledgement: V01.Acknowledgement, _ ackKey: V01.AckKey) {
        guard let request = v01Requests[ackKey.named] else { return }
        guard acknowledgement.id == ackKey.named else { return fail("an acknowledgement has another id") }
        let id = hexString(request.messageID.prefix(4))
        note("request \(id): \(acknowledgement.error.map { "\($0)" } ?? "success")")
        v01Requests[ackKey.named]?.isAnswered = true
        if acknowledgement.error != .internalError { v01Requests[ackKey.named]?.isDone = true }
        switch acknowledgement.error {
        case nil:
            for token in request.tokens where !isNotified(request, token) { fail("request \(id): success without all notifications") }
        case .badToken:
            let mustKnow = request.tokens.allSatisfy { token in
                zip(accounts, request.acknowledged).contains { $0.mustHave(token, since: $1) }
            }
            if mustKnow { fail("request \(id): an access token is registered, and not known") }
        case .internalError:
            let areUnchanged = accounts.map(\.operations.count) == request.versions
            if areUnchanged, isCalm(since: request.time - Duration.seconds(180).nanoseconds) {
                fail("request \(id): an internal error in calm")
            } else if !hasStoreTrouble(since: request.time) {
                expectNotifications(request)
            }
        case .unknown: fail("request \(id) got an unknown error")
        }
    }

    /// Whether all devices of a record that a server may have had for the access token were notified.
    private func isNotified(_ request: V01SentRequest, _ token: AccessToken) -> Bool {
        zip(accounts, request.acknowledged).contains { account, lowest in
            account.versions(with: token, since: lowest).contains { version in
                account.admitted(request.chat, by: version).allSatisfy {
                    accepted[PushKey(messageID: request.messageID, device: $0), default: 0] > 0
                }
            }
        }
    }

    private func expectNotifications(_ request: V01SentRequest) {
        for (account, count) in zip(accounts, request.versions) where account.isRegistered && account.operations.count == count {
            guard account.currentToken.map(request.tokens.contains) == true else { continue }
            for device in account.admitted(request.chat, by: account.acknowledged) {
                expectNotification(PushKey(messageID: request.messageID, device: device), of: account, since: request.time)
            }
        }
    }

    // MARK: The node's messages

    func receiveV01(_ envelope: V01.Envelope, to key: PublicKey) {
        switch envelope.type {
        case .registrationResponse:
            if let response = try? V01.RegistrationResponse(parsing: envelope.payload) { registrationAnswered(response, to: key) }
        case .queryResponse: if let response = try? V01.QueryResponse(parsing: envelope.payload) { queryAnswered(response, to: key) }
        default: fail("the node sent a client's message of version 0.1")
        }
    }

    func receiveAcknowledgement(_ envelope: V01.Envelope, under ackKey: V01.AckKey) {
        guard envelope.type == .acknowledgement, let acknowledgement = try? V01.Acknowledgement(parsing: envelope.payload) else {
            return fail("an acknowledgement is none")
        }
        acknowledged(acknowledgement, ackKey)
    }

    /// The message and the device of a notification, after checking that the device may be notified.
    func key(of content: V01Content, token: String) -> PushKey? {
        guard let account = accounts.first(where: { $0.number(of: content.installationID) != nil }),
            let device = account.number(of: content.installationID)
        else {
            fail("a notification is for no device")
            return nil
        }
        guard let version = account.version(ofToken: token, of: content.installationID) else {
            fail("device \(device) is posted with another device's token")
            return nil
        }
        if !account.mayHave(version: version, since: account.acknowledged(by: oldestRead)) {
            fail("device \(device) is posted with the token of version \(version), after version \(account.acknowledged) was acknowledged")
        }
        let place = account.number
        let isAsked = v01Requests.values.contains { request in
            request.messageID == content.message && request.chat == content.chatID
                && request.tokens.contains { token in
                    account.versions(with: token, since: request.acknowledged[place]).contains {
                        account.admitted(request.chat, by: $0).contains(device)
                    }
                }
        }
        if !isAsked { fail("device \(device) is notified of a message that nobody asked for, or that its filters exclude") }
        return PushKey(messageID: content.message, device: device)
    }
}
