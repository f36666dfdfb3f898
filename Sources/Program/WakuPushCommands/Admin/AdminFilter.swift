import ArgumentParser
import Foundation
import Core
import NodeAPI
import StatusServer
import WakuCrypto

/// Selects installations.
struct FilterOptions: ParsableArguments {
    enum State: String, ExpressibleByArgument, CaseIterable {
        case registered
        case unregistered
    }

    @Option(help: "apn, firebase or webpush.") var platform: StoredPlatform?
    @Option(help: "registered or unregistered.") var state: State?
    @Option(help: "Last changed longer ago than this, for example 90d.") var olderThan: DurationArgument?
    @Option(help: "Last changed within this time, for example 24h.") var newerThan: DurationArgument?

    var filter: RegistrationFilter {
        var filter = RegistrationFilter()
        filter.platform = platform?.platform
        filter.isRegistered = state.map { $0 == .registered }
        filter.changedBefore = olderThan.map { .now() - $0.duration }
        filter.changedSince = newerThan.map { .now() - $0.duration }
        return filter
    }

    /// The same for protocols of other packages.
    ///
    /// - Parameter prefix: of the owner's compressed public key, in hexadecimal digits.
    func owners(prefix: String = "") -> OwnerFilter { OwnerFilter(filter, prefix: prefix) }
}

/// The platform of a stored registration.
enum StoredPlatform: String, ExpressibleByArgument, CaseIterable {
    case apn
    case firebase
    case webpush

    var platform: Platform {
        switch self {
        case .apn: .apn
        case .firebase: .firebase
        case .webpush: .webPush
        }
    }
}

/// The platform of a client's device. A type of its own, because help shows the raw values of an enumeration's cases.
enum PlatformArgument: String, ExpressibleByArgument, CaseIterable {
    case apn
    case firebase

    var platform: Platform {
        switch self {
        case .apn: .apn
        case .firebase: .firebase
        }
    }
}

/// Reads a secret from the first line of a file or of standard input: on the command line it would be visible to all users of the machine.
enum SecretInput {
    static func token(_ path: String) throws(CommandFailure) -> DeviceToken { DeviceToken(try line(path, "token")) }

    static func password(_ path: String) throws(CommandFailure) -> SecretBytes { SecretBytes(Array(try line(path, "password").utf8)) }

    /// - Parameters:
    ///   - path: `-` for standard input.
    ///   - name: the name of the contents, for messages.
    private static func line(_ path: String, _ name: String) throws(CommandFailure) -> String {
        let source = path == "-" ? "standard input" : "\(name) file \(path)"
        let text: [UInt8]?
        do {
            text = try LineReader(path, maximumLineByteCount: SecretFile.maximumByteCount).next()
        } catch {
            throw CommandFailure(.data, "\(source) \(error.reason)")
        }
        let line = String(decoding: text ?? [], as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard !line.isEmpty else { throw CommandFailure(.data, "\(source) contains no \(name)") }
        return line
    }
}
