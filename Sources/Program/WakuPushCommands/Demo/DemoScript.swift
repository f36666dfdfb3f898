import Foundation
import PushClient
import Core
import StatusProtocol
import WakuCrypto

/// The steps of the demo. Prints and checks each.
struct DemoScript {
    let stage: DemoStage
    let gorush: GorushStandIn

    func run() async throws {
        let (server, bob, alice) = (stage.server, stage.bob, stage.alice)
        let device = DeviceRegistration(
            platform: .apn, deviceToken: DeviceToken("a-token-from-apple"), apnTopic: "im.status.ethereum",
            installationID: InstallationID(UUID().uuidString.lowercased()), accessToken: AccessToken(UUID().uuidString.lowercased()),
            version: 1)

        DemoStage.step("Bob's phone registers its APNs token, encrypted for the node.")
        try check(try await bob.client.register(device, with: server, timeout: DemoStage.timeout) == nil, "the node answers success")

        DemoStage.step("Alice asks the node which devices Bob has.")
        let devices = try await alice.client.query(bob.identity.publicKey, at: server, timeout: DemoStage.timeout)
        try check(devices.map(\.installationID) == [device.installationID], "the node returns Bob's installation")
        guard let token = devices.first?.accessToken else { throw CommandFailure(.data, "the node returned no access token") }
        try check(token == device.accessToken, "with its access token and a valid grant")

        DemoStage.step("Alice requests a notification for Bob about a message.")
        let messageID = randomBytes(32)
        let notification = stage.notification(for: device.installationID, accessToken: token)
        try check(try await stage.notify(notification, messageID) == .some(nil), "the node answers success")
        let posts = gorush.posts
        try check(posts.count == 1, "gorush received one post:")
        Output.text(posts.first.map(\.indented) ?? "")

        DemoStage.step("Alice repeats the request, which was delivered already.")
        try check(try await stage.notify(notification, messageID) == .some(nil), "the node answers success again")
        try check(gorush.posts.count == 1, "and gorush received no second post")

        DemoStage.step("Mallory guesses an access token.")
        var guessed = notification
        guessed.accessToken = AccessToken(UUID().uuidString)
        try check(try await stage.notify(guessed, randomBytes(32)) == .wrongToken, "the node answers WRONG_TOKEN")

        DemoStage.step("Bob unregisters.")
        let ended = try await bob.client.unregister(device.installationID, version: 2, with: server, timeout: DemoStage.timeout)
        try check(ended == nil, "the node answers success")
        try check(
            try await stage.notify(notification, randomBytes(32)) == .notRegistered, "the node answers Alice's next request NOT_REGISTERED")
        try check(gorush.posts.count == 1, "gorush received nothing more")
    }

    private func check(_ condition: Bool, _ expectation: String) throws {
        try DemoStage.check(condition, expectation)
    }
}
