import Core
import Delivery
import StatusProtocol
import Testing

@testable import StatusServer

struct StatusContentTests {
    /// Other profiles' texts and data differ by device.
    @Test func onlyThePublishedFormatGroupsDevices() {
        let content = StatusContent(
            PushNotification(
                accessToken: AccessToken("a"), chatID: [1], publicKey: [2], installationID: InstallationID("b"), kind: .message, author: [3]
            ),
            for: StatusStoreFixture.key())
        #expect(PayloadProfile.allCases.filter { content.groupKey(in: $0) != nil } == [.rfc])
    }
}
