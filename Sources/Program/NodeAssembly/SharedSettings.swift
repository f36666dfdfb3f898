import RateLimits
import Cluster
import Core
package import Delivery
import PushNode
import SessionServer
import StatusProtocol
import StatusRules
import StatusServer
import StatusV01Server
import Waku
import WakuCrypto

/// The options that must have the same value on all nodes of a cluster, by name. Nodes compare them.
extension StatusPush.Configuration {
    func sharedSettings(of identity: PrivateKey, gorushTimeout: Duration?) -> [String: String] {
        var settings = limits.sharedSettings
        settings["--identity"] = Limits.summary(Set(([identity] + otherIdentities).map(\.publicKey.compressed)))
        settings["--max-request-age"] = requestAgeLimit.exactWords
        settings["--registration-lifetime"] = registrationLifetime?.exactWords ?? "off"
        settings["--idempotent-registrations"] = idempotentRegistrations ? "on" : "off"
        return settings.merging(gorushTimeout.map(SharedSettings.gorushTimeout) ?? [:]) { $1 }
    }
}

package enum SharedSettings {
    static func gorushTimeout(_ longest: Duration) -> [String: String] { ["--gorush-timeout": longest.exactWords] }

    /// The options that decide what Apple and Google get. A difference posts for some devices what the operator has removed elsewhere, and gives a
    /// notification that another node posts again another id, so that the device shows it twice.
    ///
    /// - Parameters:
    ///   - profiles: of the gorush endpoints.
    ///   - entries: of `notifications` in the configuration file.
    package static func notifications(_ profiles: [PayloadProfile], _ entries: [[String: [String]]]) -> [String: String] {
        let lines = entries.map { entry in
            entry.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value.joined(separator: ", "))" }.joined(separator: "\n")
        }
        let digest = Limits.digest(Array(lines.joined(separator: "\n\n").utf8))
        var shared = ["notifications": entries.isEmpty ? "empty" : "\(entries.count) entries (\(digest))"]
        if let first = profiles.first {
            let isSame = profiles.allSatisfy { $0 == first }
            shared["--payload-profile"] = isSame ? first.rawValue : profiles.map(\.rawValue).joined(separator: ", ")
        }
        return shared
    }
}

extension ServerConfiguration {
    /// The options that decide which messages a node receives, and which notifications it can post. A difference delays both: other nodes wait for a
    /// node to which a message is assigned, and a node that has no endpoint for a device of its partitions keeps its notifications. Of Session's onion
    /// key it is the beginning of the public key: a node with another key refuses the requests that clients encrypt.
    package func sharedEndpoints(_ gorush: [EndpointRule]) -> [String: String] {
        var shared = [
            "--pubsub-topic": node.pubsubTopics.map(\.rawValue).sorted().joined(separator: ", "),
            "--gorush": EndpointRule.summary(gorush), "--web-push": node.webPush.map { Limits.summary(Set($0.keys.map(\.bytes))) } ?? "off",
            "--status-v0.1": statusV01 == nil ? "off" : "on", "--session-http": session == nil ? "off" : "on",
        ]
        if let session { shared["--session-onion-key"] = String(session.onionKey.publicKeyHex.prefix(16)) }
        func words(_ topic: String) -> String { topic.isEmpty ? "none" : topic }
        shared["--session-apns-topic"] = session.map { words($0.apnsTopic) }
        shared["--v0.1-apns-topic"] = statusV01.map { words($0.apnsTopic) }
        return shared
    }
}

extension EndpointRule {
    /// Differs if the endpoints accept different notifications. Their names and URLs are not part of it.
    fileprivate static func summary(_ rules: [EndpointRule]) -> String {
        guard !rules.allSatisfy(\.acceptsNothing) else { return "none" }
        let accepted = rules.map { rule in
            let lists: [[String]?] = [
                rule.platforms?.map { String($0.rawValue) }, rule.apnTopics.map(Array.init), Array(rule.sandboxTopics),
                rule.services?.map(\.rawValue),
            ]
            return lists.map { $0?.sorted().joined(separator: ",") ?? "all" }.joined(separator: " ")
        }
        return "\(rules.count) endpoints (\(Limits.digest(Array(accepted.joined(separator: "\n").utf8))))"
    }
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
        return keys.isEmpty ? "empty" : "\(keys.count) keys (\(digest(sorted)))"
    }

    fileprivate static func digest(_ bytes: [UInt8]) -> String {
        SHA256.hash(bytes).prefix(4).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

extension Duration {
    /// `600 s`, or `1500 ms`: nodes compare it. Options have no parts of a millisecond.
    fileprivate var exactWords: String {
        let (seconds, attoseconds) = components
        return attoseconds == 0 ? "\(seconds) s" : "\(seconds * 1000 + attoseconds / 1_000_000_000_000_000) ms"
    }
}
