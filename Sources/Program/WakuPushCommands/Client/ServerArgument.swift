import ArgumentParser
import Core
import PushClient
import WakuCrypto

/// A push server to register with: its public key, and for Web Push its VAPID key: `0x04…,vapid=BN…`.
struct ServerArgument: ExpressibleByArgument {
    let key: PublicKey
    let vapidKey: String?

    init?(argument: String) {
        let parts = argument.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false)
        guard let key = parts.first.flatMap({ PublicKeyArgument(argument: String($0)) })?.key else { return nil }
        self.key = key
        guard parts.count == 2 else {
            vapidKey = nil
            return
        }
        let prefix = "vapid="
        guard parts[1].hasPrefix(prefix), let vapid = VAPIDKeyArgument(argument: String(parts[1].dropFirst(prefix.count))) else {
            return nil
        }
        vapidKey = Base64URL.encode(vapid.key.bytes)
    }

    /// - Throws: `ValidationError` that describes a valid value.
    static func parse(_ text: String) throws -> Self {
        if let argument = Self(argument: text) { return argument }
        _ = try PublicKeyArgument.parse(String(text.prefix { $0 != "," }))
        throw ValidationError(
            "what follows the public key must be vapid= and a VAPID public key, as identity show --web-push-key prints it")
    }

    var server: PushServer { PushServer(key: key, vapidKey: vapidKey) }
}

/// A VAPID public key in base64url.
struct VAPIDKeyArgument: ExpressibleByArgument {
    let key: P256PublicKey

    init?(argument: String) {
        guard let bytes = Base64URL.decode(argument), let key = try? P256PublicKey(parsing: bytes) else { return nil }
        self.key = key
    }
}
