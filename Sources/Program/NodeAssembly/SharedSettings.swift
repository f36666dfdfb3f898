import RateLimits
import Cluster
import PushNode
import StatusProtocol
import StatusRules
import StatusServer
import WakuCrypto

/// Options that all nodes of a cluster must have the same, by their names: nodes compare them.
extension StatusPush.Configuration {
    func sharedSettings(of identity: PrivateKey, gorushTimeout: Duration?) -> [String: String] {
        var settings = limits.sharedSettings
        settings["--identity"] = Limits.summary(Set(([identity] + otherIdentities).map(\.publicKey.compressed)))
        settings["--max-request-age"] = "\(requestAgeLimit.components.seconds) s"
        settings["--registration-lifetime"] = registrationLifetime.map { "\($0.components.seconds) s" } ?? "off"
        settings["--idempotent-registrations"] = idempotentRegistrations ? "on" : "off"
        return settings.merging(gorushTimeout.map(SharedSettings.gorushTimeout) ?? [:]) { $1 }
    }
}

enum SharedSettings {
    static func gorushTimeout(_ longest: Duration) -> [String: String] { ["--gorush-timeout": "\(longest.components.seconds) s"] }
}

extension Limits {
    var sharedSettings: [String: String] {
        var shared = Dictionary(uniqueKeysWithValues: settings.map { ("--limit \($0.name)", $0.value) })
        shared["--allow-keys"] = allowed.map(Self.summary) ?? "off"
        shared["--deny-keys"] = Self.summary(denied)
        return shared
    }

    /// Tells two lists apart without naming keys.
    fileprivate static func summary(_ keys: Set<[UInt8]>) -> String {
        let sorted = keys.sorted { $0.lexicographicallyPrecedes($1) }.flatMap(\.self)
        let digest = SHA256.hash(sorted).prefix(4).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return keys.isEmpty ? "empty" : "\(keys.count) keys (\(digest))"
    }
}
