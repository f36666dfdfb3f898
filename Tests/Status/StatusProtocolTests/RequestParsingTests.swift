import Core
import Testing

@testable import StatusProtocol

/// The memory of large requests.
@Suite struct RequestParsingTests {
    private static func entry(_ number: UInt8, chat: UInt8) -> PushNotification {
        PushNotification(
            accessToken: AccessToken("token \(number)"), chatID: [UInt8](repeating: chat, count: 64),
            publicKey: [UInt8](repeating: 1, count: 64), installationID: InstallationID("device \(number)"),
            message: [UInt8](repeating: chat, count: 200), kind: .message,
            author: [UInt8](repeating: 2, count: 64))
    }

    private static func address(_ bytes: [UInt8]) -> UnsafeRawPointer? { bytes.withUnsafeBytes(\.baseAddress) }

    @Test func equalValuesOfSuccessiveEntriesShareTheirStorage() throws {
        let sent = PushNotificationRequest(requests: (0..<6).map { Self.entry($0, chat: $0 / 3) }, messageID: [1])
        let request = try PushNotificationRequest(parsing: sent.encoded())
        #expect(request == sent)
        #expect(Set(request.requests.map { Self.address($0.publicKey) }).count == 1)
        #expect(Set(request.requests.map { Self.address($0.author) }).count == 1)
        #expect(Set(request.requests.map { Self.address($0.chatID) }).count == 2)
        #expect(Set(request.requests.map { Self.address($0.message) }).count == 2)
        #expect(Set(request.requests.map { Self.address($0.installationID.bytes) }).count == 6)
    }
}
