import ArgumentParser
import RateLimits
import StatusProtocol
import WakuCrypto

/// Rate limits, and the keys that may register.
struct LimitOptions: ParsableArguments {
    static var standard: [(name: String, value: String)] { Limits.standard.settings }

    @Option(Settings.limit) var limit: [String]
    @Option(Settings.allowKeys) var allowKeys: String?
    @Option(Settings.denyKeys) var denyKeys: String?
    @Option(Settings.registrationLifetime) var registrationLifetime: OptionalDurationArgument

    /// The limits that are valid. Each file is read once: the second time, a pipe would be empty.
    func limits(_ failures: ConfigurationFailures) -> Limits {
        var limits = Limits.standard
        failures.checkEach("limit", limit) { text in
            do throws(Limits.Problem) {
                try limits.set(text)
            } catch {
                throw CommandFailure(.usage, "--limit: \(error.message)")
            }
        }
        if let path = Settings.allowKeys.value(allowKeys) { limits.allowed = failures.check("allow-keys") { try Self.keys(in: path) } }
        if let path = Settings.denyKeys.value(denyKeys) { limits.denied = failures.check("deny-keys") { try Self.keys(in: path) } ?? [] }
        return limits
    }

    private static func keys(in path: String) throws(CommandFailure) -> Set<[UInt8]> {
        let hashes = try ListFile(kind: "list of keys", path: path).entries("a public key or its hash in hexadecimal digits") { line in
            let text = line.prefix { $0 != "#" }
            if let key = PublicKeyArgument(argument: String(text))?.key { return KeyHash(of: key) }
            return bytes(hex: text.hasPrefix("0x") ? text.dropFirst(2) : text).flatMap(KeyHash.init(bytes:))
        }
        return Set(hashes.map(\.bytes))
    }
}
