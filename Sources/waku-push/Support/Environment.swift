import ArgumentParser
import Foundation
import Synchronization

/// Options from the environment: `--poll-interval` is `WAKU_PUSH_POLL_INTERVAL`. What is given on the command line goes first.
enum Environment {
    private static let found = Mutex<[String]>([])

    /// Values that can't be read, a line each.
    static var problems: [String] { found.withLock { $0 } }

    static func name(of option: String) -> String {
        "WAKU_PUSH_" + option.uppercased().replacing("-", with: "_")
    }

    static func string(_ option: String) -> String? {
        let value = ProcessInfo.processInfo.environment[name(of: option)]
        return value?.isEmpty == true ? nil : value
    }

    /// Separated by commas.
    static func list(_ option: String) -> [String] {
        string(option)?.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } ?? []
    }

    static func flag(_ option: String) -> Bool {
        guard let value = string(option)?.lowercased() else { return false }
        if ["1", "true", "yes"].contains(value) { return true }
        if !["0", "false", "no"].contains(value) { note("\(name(of: option)) is neither true nor false: set it to 1 or 0") }
        return false
    }

    static func value<T: ExpressibleByArgument>(_ option: String, _ standard: T) -> T {
        value(option) ?? standard
    }

    static func value<T: ExpressibleByArgument>(_ option: String) -> T? {
        guard let text = string(option) else { return nil }
        if let value = T(argument: text) { return value }
        note("\(name(of: option)) has a value that --\(option) would not take: see --help")
        return nil
    }

    private static func note(_ problem: String) {
        found.withLock { problems in
            if !problems.contains(problem) { problems.append(problem) }
        }
    }
}
