import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

/// Parsers of version 0.1 bound their allocations, and never trap.
@Suite("Version 0.1: hostile messages")
struct V01HostileMessageTests {
    private static let parsers: [(name: String, parse: @Sendable ([UInt8]) throws -> Void)] = [
        ("Register", { _ = try V01.Register(parsing: $0) }), ("Preferences", { _ = try V01.Preferences(parsing: $0) }),
        ("RegistrationResponse", { _ = try V01.RegistrationResponse(parsing: $0) }), ("Query", { _ = try V01.Query(parsing: $0) }),
        ("QueryResponse", { _ = try V01.QueryResponse(parsing: $0) }), ("Request", { _ = try V01.Request(parsing: $0) }),
        ("Acknowledgement", { _ = try V01.Acknowledgement(parsing: $0) }),
        ("ContactCodeAdvertisement", { _ = try V01.ContactCodeAdvertisement(parsing: $0) }),
    ]

    private static let samples: [[UInt8]] = {
        let vectors = V01Vectors.recorded
        return vectors.registers.flatMap { [$0.payload.bytes, $0.encoded.bytes] } + vectors.registrationResponses.map(\.encoded.bytes)
            + vectors.queryResponses.map(\.encoded.bytes) + vectors.requests.map(\.encoded.bytes)
    }()

    @Test(arguments: [1, 2, 3] as [UInt64]) func damagedMessagesNeverTrap(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let sample = try #require(Self.samples.randomElement(using: &generator))
            let bytes = generator.damaged(sample)
            for parser in Self.parsers { try? parser.parse(bytes) }
        }
    }

    @Test("Truncated messages are malformed")
    func truncated() {
        for vector in V01Vectors.recorded.registers where vector.payload.bytes.count > 20 {
            #expect(throws: ProtobufError.self) { try V01.Preferences(parsing: vector.payload.bytes.dropLast()) }
        }
    }

    private func preferences(devices: Int, listEntries: Int) -> [UInt8] {
        let entry = [[UInt8]](repeating: [1], count: listEntries)
        let filters = V01.FilterSettings(isEnabled: true, blockedChatList: entry)
        let device = V01.Device(platform: .apn, token: DeviceToken("t"), installationID: InstallationID("i"), filters: filters)
        return V01.Preferences(
            devices: .init(repeating: device, count: devices), version: 1, accessToken: AccessToken("")
        ).encoded()
    }

    @Test("Counts of devices and list entries are limited")
    func counts() throws {
        #expect(try V01.Preferences(parsing: preferences(devices: 20_000, listEntries: 0)).devices.count == 20_000)
        #expect(throws: ProtobufError.tooMany) { try V01.Preferences(parsing: preferences(devices: 30_001, listEntries: 0)) }
        #expect(try V01.Preferences(parsing: preferences(devices: 4, listEntries: 30_000)).devices.count == 4)
        #expect(throws: ProtobufError.tooMany) { try V01.Preferences(parsing: preferences(devices: 4, listEntries: 30_001)) }
        let unknown = [UInt8]([0x48, 0x01])
        #expect(throws: ProtobufError.tooMany) { try V01.Preferences(parsing: Array([[UInt8]](repeating: unknown, count: 300).joined())) }
    }

    /// 375 KB of these would take 86 GB.
    @Test func messagesThatWouldBeMergedAreRefused() throws {
        func field(_ number: UInt8, _ content: [UInt8]) -> [UInt8] { [number << 3 | 2, UInt8(content.count)] + content }
        let filters = field(4, field(2, []))
        #expect(try V01.Preferences(parsing: field(1, filters) + field(1, filters)).devices.count == 2)
        #expect(throws: ProtobufError.tooMany) { try V01.Preferences(parsing: field(1, filters + filters)) }
        let answer = field(4, field(1, filters))
        #expect(try V01.RegistrationResponse(parsing: answer).preferences?.devices.count == 1)
        #expect(throws: ProtobufError.tooMany) { try V01.RegistrationResponse(parsing: answer + answer) }
    }

    @Test("An answer may have as many access tokens as a record")
    func tokens() throws {
        func answer(_ count: Int) -> V01.QueryResponse {
            V01.QueryResponse(info: [
                V01.QueryInfo(
                    accessToken: AccessToken(""), installationID: InstallationID("i"), publicKey: [UInt8](repeating: 7, count: 32),
                    encryptedAccessTokens: [[UInt8]](repeating: [1], count: count))
            ])
        }
        let longest = answer(V01.Preferences.listEntryLimit)
        #expect(try V01.QueryResponse(parsing: longest.encoded()) == longest)
        #expect(throws: ProtobufError.tooMany) { try V01.QueryResponse(parsing: answer(V01.Preferences.listEntryLimit + 64).encoded()) }
    }

    @Test("Queries and requests for more than 1,000 are refused")
    func limits() throws {
        let hash = V01.KeyHash(of: PrivateKey.generate().publicKey)
        #expect(try V01.Query(parsing: V01.Query(.init(repeating: hash, count: 1000)).encoded()).publicKeys.count == 1000)
        #expect(throws: ProtobufError.tooMany) { try V01.Query(parsing: V01.Query(.init(repeating: hash, count: 1001)).encoded()) }
        func request(_ count: Int) -> [UInt8] {
            let entry = V01.PushNotification(accessToken: AccessToken("x"), chatID: [1])
            return V01.Request(requests: .init(repeating: entry, count: count), message: [], messageID: [1], ackKey: []).encoded()
        }
        #expect(try V01.Request(parsing: request(1000)).requests.count == 1000)
        #expect(throws: ProtobufError.tooMany) { try V01.Request(parsing: request(1001)) }
    }

    @Test("Strings that are not UTF-8 are refused")
    func invalidUTF8() {
        var writer = ProtobufWriter()
        writer.field(4, [0xC3, 0x28, 0xFF])
        #expect(throws: ProtobufError.notUTF8) { try V01.Preferences(parsing: writer.bytes) }
    }
}
