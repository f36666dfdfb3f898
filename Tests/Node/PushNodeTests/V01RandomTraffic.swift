import Core
import NodeAssembly
import StatusProtocol
import StatusV01Server
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

/// Random messages of a few accounts of version 0.1 and of senders, by seed: valid and invalid, new and stale, single and repeated.
struct V01RandomTraffic: TestedTraffic {
    private let server: PublicKey
    private var plain: PlainV01Node
    var generator: SeededGenerator
    private let accounts: [V01Account]
    private let askers: [PrivateKey]
    private let tokens: [AccessToken]
    private let ackKeys: [SymmetricKey]
    private let ackSecrets: [[UInt8]]
    private let messageIDs: [[UInt8]]
    private var sentRequests: [[UInt8]] = []
    private var sentRegisters: [(account: Int, register: V01.Register)] = []

    init(to identity: PrivateKey, seed: UInt64, accounts count: Int) {
        let server = identity.publicKey
        self.server = server
        plain = PlainV01Node(identity: identity)
        generator = SeededGenerator(seed: seed)
        accounts = (0..<count).map { _ in V01Account(of: server) }
        askers = (0..<6).map { _ in .generate() }
        // Two for each account. Accounts register tokens that another one has, or had, too.
        tokens = (0..<2 * count).map { _ in V01Account.newToken() }
        ackSecrets = (0..<6).map { _ in randomBytes(32) }
        ackKeys = ackSecrets.compactMap { SymmetricKey(bytes: $0) }
        messageIDs = (0..<30).map { Array("message \($0)".utf8) }
    }

    var recipients: [PrivateKey] { accounts.map(\.identity) + askers }

    mutating func round() -> [[WakuMessage]] {
        [mixed(80) { $0.register() }, mixed(60) { $0.request() }, queries(30)]
    }

    private mutating func queries(_ count: Int) -> [WakuMessage] {
        (0..<count).map { _ in
            let asked = (0..<Int.random(in: 1...3, using: &generator)).map { _ in generator.pick(accounts).keyHash }
            return V01Account.message(.query, V01.Query(asked).encoded(), to: server, signedBy: generator.pick(askers))
        }
    }

    private mutating func register() -> WakuMessage {
        let index = Int.random(in: accounts.indices, using: &generator)
        let account = accounts[index]
        // The same Register in another envelope.
        if let (account, register) = sentRegisters.randomElement(using: &generator), Int.random(in: 0..<5, using: &generator) == 0 {
            return accounts[account].message(register)
        }
        let own = tokens[index + (Bool.random(using: &generator) ? accounts.count : 0)]
        let token = Int.random(in: 0..<3, using: &generator) == 0 ? generator.pick(tokens) : own
        var preferences = V01.Preferences(version: UInt64.random(in: 0...9, using: &generator), accessToken: token)
        for number in 0..<Int.random(in: 0...3, using: &generator) {
            let isEnabled = Int.random(in: 0..<4, using: &generator) > 0
            preferences.devices.append(
                V01Account.device(
                    "device-\(number)", token: "token-\(index)-\(Int.random(in: 0..<1000, using: &generator))",
                    tokenType: UInt32.random(in: 1...2, using: &generator), isEnabled: isEnabled,
                    allowed: number == 1 ? [[1, 2, 3]] : [], blocked: number == 2 ? [V01.chatHash("blocked")] : []))
        }
        switch Int.random(in: 0..<12, using: &generator) {
        case 0: preferences.unregister = true
        case 1: preferences.accessToken = AccessToken("no uuid")
        case 2: preferences.devices.append(V01Account.device("other", tokenType: 7))
        case 3: preferences.devices.append(V01Account.device("device-0"))
        default: break
        }
        let register = account.register(preferences)
        sentRegisters.append((index, register))
        return account.message(register)
    }

    private mutating func request() -> WakuMessage {
        if let payload = sentRequests.randomElement(using: &generator), Int.random(in: 0..<5, using: &generator) == 0 {
            return V01Account.message(.request, payload, to: server, signedBy: .generate())
        }
        let chats = [V01.chatHash("a chat"), V01.chatHash("blocked"), Array(hexString(V01.chatHash("blocked")).utf8)]
        let entries = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
            V01.PushNotification(
                accessToken: Int.random(in: 0..<8, using: &generator) == 0 ? V01Account.newToken() : generator.pick(tokens),
                chatID: generator.pick(chats))
        }
        let secret = generator.pick(ackSecrets)
        let ackKey = Int.random(in: 0..<8, using: &generator) == 0 ? Array(hexString(secret).utf8) : secret
        let payload = V01.Request(
            requests: entries, message: [1, 2, 3], messageID: generator.pick(messageIDs), ackKey: ackKey
        ).encoded()
        sentRequests.append(payload)
        return V01Account.message(.request, payload, to: server, signedBy: .generate())
    }
}

extension V01RandomTraffic {
    struct Answer: Hashable {
        let answer: PlainV01Node.Answer
        /// The rows of a query's answer, in any order.
        let rows: Set<[UInt8]>

        init(_ answer: PlainV01Node.Answer) throws {
            guard answer.type == .queryResponse else {
                (self.answer, rows) = (answer, [])
                return
            }
            let info = try V01.QueryResponse(parsing: answer.payload).info
            rows = Set(info.map { V01.QueryResponse(info: [$0]).encoded() })
            self.answer = PlainV01Node.Answer(type: answer.type, contentTopic: answer.contentTopic, payload: [])
        }
    }

    static func configure(_ configuration: inout ServerConfiguration) {
        configuration.statusV01 = StatusPushV01.Configuration()
    }

    var notified: [PlainNode.Notified] { plain.notified }

    mutating func plainAnswer(to message: WakuMessage) throws -> Answer? {
        try plain.receive(message).map { try Answer($0) }
    }

    func answer(in message: WakuMessage, to recipients: [PrivateKey]) throws -> Answer? {
        for identity in recipients.map(Optional.some) + [nil] {
            guard let opened = try? EnvelopeSealing.open(message, identity: identity, topicKeys: identity == nil ? ackKeys : []) else {
                continue
            }
            let envelope = try V01.Envelope(parsing: opened.data, wakuSigner: opened.signer)
            return try Answer(
                PlainV01Node.Answer(type: envelope.type, contentTopic: message.contentTopic, payload: envelope.payload))
        }
        return nil
    }

    func expectSame(in store: any Store) throws {
        for account in accounts {
            let stored = try store.read(Records(store.sealer).preferences(of: account.keyHash))
            #expect(stored == plain.records[account.keyHash])
        }
    }
}
