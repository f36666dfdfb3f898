import Core
import CurlClient
import Delivery
import Foundation
import HTTPService
import NodeAssembly
import PushClient
import PushNode
import PushReceiver
import PushReceiverHTTP
import StatusProtocol
import Synchronization
import WakuCrypto

/// The demo with a Web Push subscription of this machine in place of gorush. Prints and checks each step.
struct WebPushDemo: DemoSteps, Sendable {
    private let stage: DemoStage
    private let desktop: Desktop
    /// The receiver's URL.
    private let url: String
    private let key: VAPIDKey
    /// Posts as another server would.
    private let stranger: WebPushClient

    static func run(in folder: String) async throws {
        let desktop = try Desktop(in: folder)
        let key = VAPIDKey(.generate())
        let allowed = ["127.0.0.1"].compactMap { AddressRange($0) }
        let curl = CurlClient(
            configuration: WebPushClient.configuration(trust: .file(path: desktop.authorityFile), allowed: allowed))
        let contact = "mailto:operator@example.org"
        let stranger = WebPushClient(client: curl, key: VAPIDKey(.generate()), contact: contact)
        var configuration = ServerConfiguration(identity: .generate(), dataPath: folder + "/data")
        configuration.webPush = WebPushEndpoint(WebPushClient(client: curl, key: key, contact: contact))
        try await withServer(desktop.serve) { [configuration] port in
            let url = "https://127.0.0.1:\(port)"
            try await DemoStage.run(configuration, .none, receiver: "a receiver of Web Push at \(url)") { stage in
                try await WebPushDemo(stage: stage, desktop: desktop, url: url, key: key, stranger: stranger).run()
            }
        }
    }

    private func run() async throws {
        let (server, bob, alice) = (stage.server, stage.bob, stage.alice)
        step("Bob's desktop makes a subscription for the node's VAPID key.")
        let subscription = try desktop.subscribe(at: url, for: key.key.publicKey)
        try check(subscription.vapidKey == key.key.publicKey, "VAPID key \(key.publicKey)")

        step("Bob's desktop registers it with the node, encrypted.")
        let device = DeviceProfile(webPush: subscription.subscription)
        let installation = InstallationID(UUID().uuidString.lowercased())
        try check(
            try await bob.client.register(
                device, as: installation, accessToken: AccessToken(UUID().uuidString.lowercased()), version: 1, with: server,
                vapidKey: key.publicKey,
                timeout: DemoStage.timeout) == nil,
            "the node answers success")

        step("Alice asks the node which devices Bob has.")
        let devices = try await alice.client.query(bob.identity.publicKey, at: server, timeout: DemoStage.timeout)
        guard let token = devices.first?.accessToken else { throw failure("an access token") }
        try check(devices.map(\.installationID) == [installation], "the node returns Bob's installation, and no subscription")

        step("Alice requests a notification for Bob about a message.")
        let messageID = randomBytes(32)
        let notification = stage.notification(for: installation, accessToken: token)
        try check(try await stage.notify(notification, messageID) == .some(nil), "the node answers success")
        let received = desktop.received
        try check(received.count == 1, "the desktop received one notification, signed by the node and encrypted to the desktop:")
        show(ReceiverEventLine.notification(received[0], at: Date(), asJSON: true))

        step("Alice repeats the request, which was delivered already.")
        try check(try await stage.notify(notification, messageID) == .some(nil), "the node answers success again")
        try check(desktop.received.count == 1, "and the desktop received nothing more")

        step("Another server, to which the subscription became known, posts to it.")
        let forged = WebPushMessage(
            id: "1", subscription: subscription.subscription,
            content: WebPushContent(whole: Array("{}".utf8), truncated: [], urgency: .high), expires: .now() + .seconds(60))
        try check(await stranger.post(forged).status == 403, "the desktop refuses its VAPID key")
        try check(desktop.received.count == 1, "and shows nothing")

        step("Bob's desktop ends its subscription without telling the node.")
        desktop.end(subscription)
        let deadline = ContinuousClock.now + DemoStage.timeout
        var answer: PushNotificationReport.ErrorType??
        repeat {
            answer = try await stage.notify(notification, randomBytes(32))
        } while answer != .notRegistered && ContinuousClock.now < deadline
        try check(answer == .notRegistered, "the node learns it from the next post, and answers Alice NOT_REGISTERED from then on")
        try check(desktop.received.count == 1, "and the desktop received nothing more")
    }
}

/// A receiver on a free port.
private final class Desktop: Sendable {
    let authorityFile: String
    private let server: PushReceiverServer
    private let notifications: Notifications

    private final class Notifications: Sendable {
        let all = Mutex<[ReceivedNotification]>([])
    }

    init(in folder: String) throws {
        guard let certificate = TrialCertificate(hosts: ["127.0.0.1"]) else { throw CommandFailure(.data, "no certificate could be made") }
        authorityFile = folder + "/authority.pem"
        try PrivateFile(kind: "certificate", path: authorityFile).create(certificate.authority)
        let notifications = Notifications()
        let made = PushReceiverServer(
            PushInbox([]), host: "127.0.0.1", port: 0, certificate: (Array(certificate.certificate.utf8), Array(certificate.key.utf8))
        ) { event in
            if case .received(let notification) = event { notifications.all.withLock { $0.append(notification) } }
        }
        guard let made else { throw CommandFailure(.data, "no certificate could be made") }
        server = made
        self.notifications = notifications
    }

    @Sendable func serve(_ bound: @escaping @Sendable (Int) -> Void) async throws { try await server.run(bound: bound) }

    var received: [ReceivedNotification] { notifications.all.withLock { $0 } }

    func subscribe(at url: String, for key: P256PublicKey) throws -> ReceiverSubscription {
        guard let made = ReceiverSubscription(base: url, vapidKey: key) else {
            throw CommandFailure(.data, "no subscription could be made")
        }
        server.add(made)
        return made
    }

    func end(_ subscription: ReceiverSubscription) {
        server.remove(subscription)
    }
}
