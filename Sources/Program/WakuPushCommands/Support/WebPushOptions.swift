import ArgumentParser
import Core
import CurlClient
import Delivery
import Foundation
import WakuCrypto

/// Posting to Web Push services. Off unless `--web-push` is given.
struct WebPushOptions: ParsableArguments {
    @Flag(inversion: .prefixedNo, help: "Take Web Push subscriptions as devices, and post to their push services, without gorush.")
    var webPush: Bool = Environment.flag("web-push")

    @Option(
        help:
            "File with the VAPID key by which push services know this node: PEM, or 32 bytes in base64url. Made by waku-push identity new-vapid."
    )
    var webPushKey: String?

    @Option(help: "The operator's address for push services: mailto:… or https://….")
    var webPushContact: String?

    @Option(
        help:
            "A network that Web Push may connect to although it is not public, such as 192.168.7.0/24, for a distributor in the operator's own network; repeat it for several."
    )
    var webPushAllow: [String] = Environment.list("web-push-allow")

    @Option(help: "File with CA certificates (PEM) to trust instead of the system's for Web Push.")
    var webPushCa: String?

    private var keyFile: String? { webPushKey ?? Environment.string("web-push-key") }
    private var contact: String? { webPushContact ?? Environment.string("web-push-contact") }
    private var authorities: String? { webPushCa ?? Environment.string("web-push-ca") }

    /// nil when Web Push is off.
    ///
    /// - Throws: ``CommandFailure`` for a missing or invalid option.
    func endpoint() throws(CommandFailure) -> WebPushEndpoint? {
        guard webPush else {
            let given = [("key", keyFile), ("contact", contact), ("allow", webPushAllow.first), ("ca", authorities)]
            if let (name, _) = given.first(where: { $0.1 != nil }) {
                throw CommandFailure(.usage, "--web-push-\(name) has no effect without --web-push")
            }
            return nil
        }
        guard let keyFile else {
            throw CommandFailure(.usage, "--web-push-key is missing: make a key with waku-push identity new-vapid --out vapid.key")
        }
        let key = try VAPIDKeyFile.read(keyFile)
        guard let contact, VAPIDKey.isContact(contact) else {
            throw CommandFailure(
                .usage,
                "--web-push-contact must be an address of the operator such as mailto:operator@example.org: push services require it")
        }
        var allowed: [IPNetwork] = []
        for text in webPushAllow {
            guard let network = IPNetwork(text) else {
                throw CommandFailure(.usage, "--web-push-allow \(text) is not a network: give one such as 192.168.7.0/24 or fd00:1::/32")
            }
            allowed.append(network)
        }
        var trust = CurlConfiguration.Trust.system
        if let authorities {
            guard FileManager.default.isReadableFile(atPath: authorities) else {
                throw CommandFailure(.data, "certificates \(authorities) can't be read: give --web-push-ca a PEM file")
            }
            trust = .file(path: authorities)
        }
        let client = CurlClient(configuration: WebPushClient.configuration(trust: trust, allowed: allowed))
        return WebPushEndpoint(WebPushClient(client: client, key: key, contact: contact), publicKey: key.publicKey)
    }
}

/// A file with a VAPID key, accessible to its owner only.
enum VAPIDKeyFile {
    private static let sizeLimit = 8192

    static func read(_ path: String) throws(CommandFailure) -> VAPIDKey {
        let content = try PrivateFile(kind: "VAPID key file", path: path)
            .read(upTo: sizeLimit, remedy: "make one with waku-push identity new-vapid --out \(path)")
        guard let key = VAPIDKey(file: content) else {
            throw CommandFailure(
                .data,
                "VAPID key file \(path) contains neither a PEM key of P-256 nor 32 bytes in base64url: make one with waku-push identity new-vapid"
            )
        }
        return key
    }

    /// Creates a file with a new key.
    static func create(_ path: String) throws(CommandFailure) -> VAPIDKey {
        let key = VAPIDKey(.generate())
        try PrivateFile(kind: "VAPID key file", path: path).create(key.fileText)
        return key
    }
}
