import ArgumentParser
import Foundation

/// An option of serve, read from its help.
struct ServeOption {
    let name: String
    let help: String
    /// The default as it would be written on the command line; nil if there is none.
    let standard: String?
    let isFlag: Bool
    let isList: Bool

    /// All options, in the order of the help.
    static let all: [ServeOption] = {
        struct Dump: Decodable {
            struct Command: Decodable { let arguments: [Argument] }
            struct Argument: Decodable {
                struct Name: Decodable { let name: String }
                let kind: String
                let preferredName: Name?
                let abstract: String?
                let defaultValue: String?
                let isRepeating: Bool
            }
            let command: Command
        }
        let text = Environment.hidden { Serve._dumpHelp() }
        guard let dump = try? JSONDecoder().decode(Dump.self, from: Data(text.utf8)) else { return [] }
        var seen: Set<String> = ["help", "version", "config"]
        return dump.command.arguments.compactMap { argument in
            let isFlag = argument.kind == "flag"
            guard var name = argument.preferredName?.name else { return nil }
            // A flag is listed as --name and --no-name.
            if isFlag, name.hasPrefix("no-") { name.removeFirst(3) }
            guard seen.insert(name).inserted else { return nil }
            return ServeOption(
                name: name, help: argument.abstract ?? "", standard: isFlag ? "false" : argument.defaultValue, isFlag: isFlag,
                isList: argument.isRepeating)
        }
    }()

    static let names = Set(all.map(\.name))

    /// Whether one of these options is on the command line, in the environment or in the configuration file.
    static func isGiven(_ names: [String]) -> Bool {
        all.contains { names.contains($0.name) && $0.value(Invocation.current.arguments).source != "default" }
    }

    /// An effective value and its source.
    struct Value: Encodable, Equatable {
        let option: String
        /// Empty if the option has no value.
        let values: [String]
        /// `command line`, the name of an environment variable, file and line of the configuration file, or `default`.
        let source: String
    }

    /// The effective value.
    ///
    /// - Parameter arguments: the command line.
    func value(_ arguments: [String]) -> Value {
        var given: [String] = []
        for (index, argument) in arguments.enumerated() {
            if isFlag {
                if argument == "--\(name)" { given = ["true"] }
                if argument == "--no-\(name)" { given = ["false"] }
            } else if argument == "--\(name)" {
                given += arguments.dropFirst(index + 1).prefix(1)
            } else if argument.hasPrefix("--\(name)=") {
                given.append(String(argument.dropFirst(name.count + 3)))
            }
        }
        if !given.isEmpty { return Value(option: name, values: isList ? given : given.suffix(1), source: "command line") }
        if let (values, source) = Environment.setting(name) {
            let place = source.split(separator: ": ").first.map(String.init) ?? source
            return Value(option: name, values: isList ? Environment.list(name) : values.suffix(1), source: place)
        }
        return Value(option: name, values: standard.map { [$0] } ?? [], source: "default")
    }
}
