import ArgumentParser
import Foundation
import PushTypes
import StatusServer
import StoreSQLite
import StatusProtocol
import Waku

/// Selects installations.
struct FilterOptions: ParsableArguments {
    enum State: String, ExpressibleByArgument, CaseIterable {
        case registered
        case unregistered
    }

    @Option(help: "apn or firebase.") var platform: PlatformArgument?
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
}

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

/// Reads a device token from a file or from standard input: on the command line every user of the machine could see it.
struct TokenInput {
    /// - Parameter path: `-` for standard input.
    static func read(_ path: String) throws(CommandFailure) -> DeviceToken {
        var text: String?
        if path == "-" {
            text = readLine()
        } else if let file = try? LineReader(path) {
            text = file.next().map { String(decoding: $0, as: UTF8.self) }
        } else {
            throw CommandFailure(.data, "token file \(path) can't be read: is it there, and may this user read it?")
        }
        let token = text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
        guard !token.isEmpty else {
            throw CommandFailure(.data, "\(path == "-" ? "standard input" : "token file \(path)") contains no token")
        }
        return DeviceToken(token)
    }
}
