import ArgumentParser
import Core
import CurlClient
import Delivery
import Foundation
import RateLimits
import WakuCrypto

/// Posting to Web Push services. Off unless `--web-push` is given.
struct WebPushOptions: ParsableArguments {
    @Flag(Settings.webPush) var webPush: Bool
    @Option(Settings.webPushKey) var webPushKey: String?
    @Option(Settings.webPushFormerKey) var webPushFormerKey: [String]
    @Option(Settings.webPushContact) var webPushContact: String?
    @Option(Settings.webPushAllow) var webPushAllow: [String]
    @Option(Settings.webPushCa) var webPushCa: String?
    @Option(Settings.webPushByOrigin) var webPushByOrigin: String

    private static let formerKeyLimit = 3

    private var keyFile: String? { Settings.webPushKey.value(webPushKey) }
    private var contact: String? { Settings.webPushContact.value(webPushContact) }
    private var authorities: String? { Settings.webPushCa.value(webPushCa) }

    /// Checks the options one by one, before ``endpoint()`` checks all of them.
    func check(_ failures: ConfigurationFailures) {
        guard webPush else { return }
        failures.check("web-push-key") { try key() }
        failures.check("web-push-former-key") { try formerKeys() }
        failures.check("web-push-contact") { try checkedContact() }
        failures.checkEach("web-push-allow", webPushAllow) { _ = try Self.network($0) }
        failures.check("web-push-ca") { try trust() }
        failures.check("web-push-by-origin") { try rate() }
    }

    /// nil when Web Push is off.
    ///
    /// - Throws: ``CommandFailure`` for a missing or invalid option.
    func endpoint() throws(CommandFailure) -> WebPushEndpoint? {
        guard webPush else {
            let given = [
                ("key", keyFile), ("former-key", webPushFormerKey.first), ("contact", contact), ("allow", webPushAllow.first),
                ("ca", authorities), ("by-origin", webPushByOrigin == Settings.webPushByOrigin.standard ? nil : webPushByOrigin),
            ]
            if let (name, _) = given.first(where: { $0.1 != nil }) {
                throw CommandFailure(.usage, "--web-push-\(name) has no effect without --web-push")
            }
            return nil
        }
        let (key, formerKeys, contact) = (try key(), try formerKeys(), try checkedContact())
        let allowed = try webPushAllow.map(Self.network)
        let trust = try trust()
        let client = CurlClient(configuration: WebPushClient.configuration(trust: trust, allowed: allowed))
        let rate = try rate()
        return WebPushEndpoint(
            WebPushClient(client: client, key: key, formerKeys: formerKeys, contact: contact),
            rate: (rate.perSecond, Double(rate.burst)))
    }

    private func rate() throws(CommandFailure) -> RateLimit {
        do throws(RateLimit.Problem) {
            return try RateLimit(parsing: webPushByOrigin)
        } catch {
            throw CommandFailure(
                .usage, "--web-push-by-origin \(webPushByOrigin) is not a rate: write it like 100/s burst 1000, or 600/min")
        }
    }

    private func key() throws(CommandFailure) -> VAPIDKey {
        guard let keyFile else {
            throw CommandFailure(.usage, "--web-push-key is missing: make a key with waku-push identity new-vapid --out vapid.key")
        }
        return try VAPIDKeyFile.read(keyFile)
    }

    private func formerKeys() throws(CommandFailure) -> [VAPIDKey] {
        guard webPushFormerKey.count <= Self.formerKeyLimit else {
            throw CommandFailure(.usage, "--web-push-former-key can be given at most \(Self.formerKeyLimit) times")
        }
        // An error of --web-push-key is reported for that option.
        var known = (try? key()).map { [$0.publicKey] } ?? []
        var keys: [VAPIDKey] = []
        for file in webPushFormerKey {
            let key = try VAPIDKeyFile.read(file)
            guard !known.contains(key.publicKey) else {
                throw CommandFailure(.usage, "--web-push-former-key \(file) is the key of --web-push-key, or given twice")
            }
            known.append(key.publicKey)
            keys.append(key)
        }
        return keys
    }

    func checkedContact() throws(CommandFailure) -> String {
        guard let contact, VAPIDKey.isContact(contact) else {
            throw CommandFailure(
                .usage,
                "--web-push-contact must be an address of the operator such as mailto:operator@example.org: push services require it")
        }
        return contact
    }

    private static func network(_ text: String) throws(CommandFailure) -> AddressRange {
        guard let network = AddressRange(exactly: text) else {
            throw CommandFailure(.usage, "--web-push-allow \(text) is not a network: give one such as 192.168.7.0/24 or fd00:1::/32")
        }
        return network
    }

    private func trust() throws(CommandFailure) -> CurlConfiguration.Trust {
        guard let authorities else { return .system }
        return try CertificateFile.trust(authorities, option: "--web-push-ca")
    }
}

extension PushSubscription {
    /// - Parameter path: a file with the JSON that browsers make; `-` for standard input.
    init(file path: String) throws(CommandFailure) {
        let file = path == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: path)
        guard let content = try? file?.read(upToCount: Self.jsonByteLimit + 1) else {
            throw CommandFailure(.data, "subscription \(path) can't be read: is it there, and may this user read it?")
        }
        guard let subscription = PushSubscription(json: Array(content)) else {
            throw CommandFailure(
                .data,
                "subscription \(path) is not the JSON of a Web Push subscription: {\"endpoint\": \"https://…\", \"keys\": {\"p256dh\": …, \"auth\": …}}"
            )
        }
        self = subscription
    }
}
