import Core
import Delivery
import Foundation
import Logging
import NodeAPI
import SessionProtocol
import SessionServer
import SessionStandIns
import StatusProtocol
import TestSupport
import WakuCrypto

/// A message of a Session account, with its devices' knowledge when the storage servers accepted it.
struct SessionMessage {
    let message: NotifyMessage
    let time: Int64
    /// Of each subscriber, the acknowledged version.
    let acknowledged: [UInt64]
}

/// Session: devices that subscribe, and the storage servers that hold their accounts' messages.
extension World {
    func makeSubscribers() {
        // Session remembers deliveries for a day, regardless of the node's retention.
        if options.mistake == .shortMemory { return }
        let kinds: [SessionClient.Kind] = [.person, .group]
        for _ in 0..<Int.random(in: 1...2, using: &generator) {
            guard let key = Ed25519PrivateKey(seed: generator.bytes(32)),
                let client = SessionClient(sodium: sodium, kind: generator.pick(kinds), key: key)
            else { return fail("a Session account can't be made") }
            for _ in 0..<Int.random(in: 1...2, using: &generator) {
                subscribers.append(
                    SessionSubscriber(number: 2_000 + subscribers.count, client: client, world: self, pace: generator.pick([1, 2, 8])))
            }
        }
        swarms = SimulatedSwarms(self, sodium: sodium)
        swarms?.writeMap()
    }

    /// Session as the node composes it, but without sockets.
    func makeSession(of node: NodeProcess, ageLimit: Duration) -> SessionPush? {
        guard let swarms, let onionKey = OnionKey(SecretBytes(repeatElement(7, count: 32)), sodium: sodium) else { return nil }
        let life = node.life
        var configuration = SessionPush.Configuration(
            httpAddress: SocketAddress(host: "127.0.0.1", port: 0), onionKey: onionKey, sodium: sodium,
            makeMonitor: { [self] entries, receiver, logger, count in
                let (mistake, connect) = (options.mistake, connect(node, to: swarms))
                let monitor = SubscriptionMonitor(
                    .init(source: .file(swarms.path)), connect: connect, entries: mistake?.entries(entries) ?? entries,
                    receiver: mistake?.receiver(receiver) ?? receiver, logger: logger, count: count)
                return mistake?.monitor(monitor) ?? monitor
            })
        configuration.apnsTopic = "com.session"
        configuration.ageLimit = ageLimit
        configuration.serve = { [self] answer in
            if node.life == life { node.sessionAnswer = options.mistake?.answer(answer) ?? answer }
            while (try? await Task.sleep(for: .seconds(3_600))) != nil {}
            if node.life == life { node.sessionAnswer = nil }
        }
        return SessionPush(configuration)
    }

    private func connect(_ node: NodeProcess, to swarms: SimulatedSwarms) -> MakeOxenMQConnections {
        { [self] _, handler in
            let connections = SimulatedConnections(self, swarms, of: node, handler: handler)
            node.connections = connections
            return connections
        }
    }

    func beginSessionActivity() {
        guard !subscribers.isEmpty else { return }
        repeatedly(after: 10...90) { [self] in sendMessage(to: generator.pick(subscribers).client.account) }
    }

    // MARK: Subscriptions

    /// Sends a body to the function that answers HTTP requests, of any node, on a network that may lose it or its answer.
    func post(_ operation: Registrant.Operation, of subscriber: SessionSubscriber) {
        transmit { [self] in
            let node = nodes.count == 1 ? first : generator.pick(nodes)
            guard let answer = node.sessionAnswer else { return }
            subscriber.delivered(operation.version)
            let isNewest = operation.version == subscriber.operations.count
            if isNewest { subscriber.wasClockWrong = active.contains(.clock) }
            let endpoint = operation.isRegistration ? SessionEndpoint.subscribe : .unsubscribe
            scheduler.within(node.life) {
                _ = Task.detached { [life = node.life] in
                    let result = try? await answer(operation.envelope, endpoint)
                    if isNewest, self.active.contains(.clock) { subscriber.wasClockWrong = true }
                    guard let result, node.life == life else { return }
                    self.transmit { [self] in answered(operation, of: subscriber, result.json, isUnavailable: result.isUnavailable) }
                }
            }
        }
    }

    private func answered(_ operation: Registrant.Operation, of subscriber: SessionSubscriber, _ json: String, isUnavailable: Bool) {
        note("\(subscriber.name): version \(operation.version): \(json)")
        if json.hasPrefix(#"{"success":true"#) { return subscriber.acknowledge(operation.version) }
        if isUnavailable { return refused(.internalError, subscriber) }
        let isNewest = operation.version == subscriber.operations.count
        if isNewest { fail("\(subscriber.name): a valid request was refused: \(json)") }
    }

    // MARK: Messages

    /// To each account.
    func sendMessages() {
        for subscriber in subscribers { sendMessage(to: subscriber.client.account) }
    }

    private func report(_ message: NotifyMessage) {
        for node in nodes { node.connections?.report(message) }
    }

    func sendMessage(to account: AccountID) {
        let namespace: Int16 = generator.pick([0, 0, 0, 2, 11, 5])
        let hash = hexString(generator.bytes(22))
        let data = chance(0.8) ? generator.bytes(generator.pick([0, 20, 300, 2_500, 2_501, 4_000])) : nil
        let now = wallTime.rawValue / 1_000_000
        let message = NotifyMessage(
            account: account, hash: hash, namespace: namespace, storedAt: now, expiresAt: now + 14 * 86_400_000, data: data)
        sessionMessages[hash] = SessionMessage(message: message, time: scheduler.now, acknowledged: subscribers.map(\.acknowledged))
        note("message \(hash.prefix(8)) in namespace \(namespace)")
        counts.requests += 1
        report(message)
        sendAgain { [self] in report(message) }
        let sent = scheduler.now
        let isCalm = isCalm(since: sent - Duration.seconds(200).nanoseconds, besides: [.clock], swarms: true)
        for subscriber in subscribers where isCalm && subscriber.client.account == account && subscriber.isRegistered {
            let version = subscriber.acknowledged
            guard subscriber.wants(namespace: namespace, at: version),
                subscriber.acknowledgedAt <= sent - Duration.seconds(3).nanoseconds
            else { continue }
            scheduler.after(.seconds(10)) { [self] in
                guard subscriber.operations.count == version, self.isCalm(since: sent, besides: [.clock], swarms: true) else { return }
                counts.checks += 1
                let key = PushKey(messageID: Array(hash.utf8), device: subscriber.number)
                if accepted[key, default: 0] == 0 { fail("\(subscriber.name) was not notified of \(hash.prefix(8)) within 10 s") }
            }
        }
        scheduler.after(.seconds(2_000)) { [self] in sessionMessages[hash] = nil }
    }

    /// The message and the device of a notification, after checking that the device may be notified.
    func key(of content: SessionContent, token: String) -> PushKey? {
        guard let place = subscribers.firstIndex(where: { $0.has(token: token) }) else {
            fail("a notification is for no device")
            return nil
        }
        let subscriber = subscribers[place]
        guard let json = content.webPushContent(id: "")?.whole, let fields = try? JSONDecoder().decode(Payload.self, from: Data(json)),
            let (version, notification) = subscriber.version(opening: fields.sealed, since: 0, sodium),
            let sent = sessionMessages[notification.hash]
        else {
            fail("\(subscriber.name) is notified of no message, or long after")
            return nil
        }
        let message = sent.message
        // While a notification waits, its subscription may be renewed: it keeps its contents, and is sealed again with the new key.
        let made = subscriber.possible(since: sent.acknowledged[place]).compactMap(\.self).filter {
            $0 <= version && subscriber.wants(namespace: message.namespace, at: $0)
        }
        if made.isEmpty || message.account != subscriber.client.account {
            fail("\(subscriber.name) is notified of a message that it does not want")
        }
        let data = message.data.flatMap { $0.count <= 2_500 ? Array($0) : nil }
        if notification.account != message.account || notification.namespace != Int(message.namespace)
            || !made.contains(where: { notification.data == (subscriber.wantsData(at: $0) ? data : nil) })
        {
            fail("\(subscriber.name) is notified of a message with other contents")
        }
        if !subscriber.mayHave(version: version, since: sent.acknowledged[place]) {
            fail("\(subscriber.name) is notified with the key of version \(version), replaced before the message came")
        }
        if !subscriber.possible(since: subscriber.acknowledged(by: oldestRead)).contains(where: { $0 != nil }) {
            fail("\(subscriber.name) is notified after its end was acknowledged")
        }
        return PushKey(messageID: Array(notification.hash.utf8), device: subscriber.number)
    }

    private struct Payload: Decodable {
        let sealed: String

        enum CodingKeys: String, CodingKey {
            case sealed = "enc_payload"
        }
    }
}
