import ArgumentParser
import Foundation
import PushNode
import RateLimits
import StatusRules
import StatusProtocol
import WakuCrypto

/// Rate limits, and the keys that may register.
struct LimitOptions: ParsableArguments {
    static var standard: [(name: String, value: String)] { Limits.standard.settings }

    @Option(Settings.limit) var limit: [String]
    @Option(Settings.allowKeys) var allowKeys: String?
    @Option(Settings.denyKeys) var denyKeys: String?
    @Option(Settings.registrationLifetime) var registrationLifetime: OptionalDurationArgument

    func limits() throws(CommandFailure) -> Limits {
        var limits = Limits.standard
        for text in limit {
            do throws(Limits.Problem) {
                try limits.set(text)
            } catch {
                throw CommandFailure(.usage, "--limit: \(error.message)")
            }
        }
        if let path = allowKeys ?? Environment.string("allow-keys") { limits.allowed = try Self.keys(in: path) }
        if let path = denyKeys ?? Environment.string("deny-keys") { limits.denied = try Self.keys(in: path) }
        return limits
    }

    private static func keys(in path: String) throws(CommandFailure) -> Set<[UInt8]> {
        guard let content = FileManager.default.contents(atPath: path) else {
            throw CommandFailure(.data, "list of keys \(path) can't be read: is it there, and may this user read it?")
        }
        var keys: Set<[UInt8]> = []
        for (index, line) in String(decoding: content, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).enumerated()
        {
            let text = line.prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
            guard !text.isEmpty else { continue }
            if let key = PublicKeyArgument(argument: text)?.key {
                keys.insert(KeyHash(of: key).bytes)
            } else if let hash = bytes(hex: text.hasPrefix("0x") ? text.dropFirst(2) : text[...]).flatMap(KeyHash.init(bytes:)) {
                keys.insert(hash.bytes)
            } else {
                throw CommandFailure(.data, "\(path):\(index + 1): not a public key or its hash in hexadecimal digits")
            }
        }
        return keys
    }
}
