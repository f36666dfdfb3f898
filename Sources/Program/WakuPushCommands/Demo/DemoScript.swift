import Foundation
import PushClient
import Core
import StatusProtocol
import WakuCrypto

/// The steps of the demo. Prints and checks each.
struct DemoScript: DemoSteps {
    let stage: DemoStage
    let gorush: GorushStandIn

    func run() async throws {
        let (server, bob, alice) = (stage.server, stage.bob, stage.alice)
        let device = DeviceProfile(platform: .apn, deviceToken: DeviceToken("a-token-from-apple"), apnTopic: "im.status.ethereum")
        let installation = InstallationID(UUID().uuidString.lowercased())
        let accessToken = AccessToken(UUID().uuidString.lowercased())

        step("Bob's phone registers its APNs token, encrypted for the node.")
        try check(
            try await bob.client.register(
                device, as: installation, accessToken: accessToken, version: 1, with: server, timeout: DemoStage.timeout) == nil,
            "the node answers success")

        step("Alice asks the node which devices Bob has.")
        let devices = try await alice.client.query(bob.identity.publicKey, at: server, timeout: DemoStage.timeout)
        try check(devices.map(\.installationID) == [installation], "the node returns Bob's installation")
        guard let token = devices.first?.accessToken else { throw failure("an access token") }
        try check(token == accessToken, "with its access token and a valid grant")

        step("Alice requests a notification for Bob about a message.")
        let messageID = randomBytes(32)
        let notification = stage.notification(for: installation, accessToken: token)
        try check(try await stage.notify(notification, messageID) == .some(nil), "the node answers success")
        let posts = gorush.posts
        try check(posts.count == 1, "gorush received one post:")
        show(posts[0])

        step("Alice repeats the request, which was delivered already.")
        try check(try await stage.notify(notification, messageID) == .some(nil), "the node answers success again")
        try check(gorush.posts.count == 1, "and gorush received no second post")

        step("Mallory guesses an access token.")
        var guessed = notification
        guessed.accessToken = AccessToken(UUID().uuidString)
        try check(try await stage.notify(guessed, randomBytes(32)) == .wrongToken, "the node answers WRONG_TOKEN")

        step("Bob unregisters.")
        let ended = try await bob.client.unregister(installation, version: 2, with: server, timeout: DemoStage.timeout)
        try check(ended == nil, "the node answers success")
        try check(
            try await stage.notify(notification, randomBytes(32)) == .notRegistered, "the node answers Alice's next request NOT_REGISTERED")
        try check(gorush.posts.count == 1, "gorush received nothing more")
    }
}

/// Prints and checks the steps of a demo.
package protocol DemoSteps {}

extension DemoSteps {
    package func step(_ text: String) {
        Output.line()
        Output.text(text)
    }

    package func check(_ condition: Bool, _ expectation: String) throws {
        guard condition else { throw failure(expectation) }
        Output.line("  ok: \(expectation)")
    }

    package func failure(_ expectation: String) -> CommandFailure {
        CommandFailure(.data, "this did not happen: \(expectation)")
    }

    /// Prints what was posted to gorush.
    package func show(_ post: String) {
        Output.text(post.split(separator: "\n").map { "    " + $0 }.joined(separator: "\n"))
    }
}
