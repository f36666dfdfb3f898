import Foundation
import Yams

/// A YAML file of options. Its keys are the names of the options of serve, without leading dashes, `gorush-endpoints` and `notifications`. A
/// list repeats an option; a mapping repeats it with `key=value` for each entry.
struct ConfigurationFile {
    struct Setting: Equatable {
        let values: [String]
        /// File and line.
        let place: String
    }

    /// An entry of `gorush-endpoints` or `notifications`.
    struct Entry: Equatable {
        let options: [String: Setting]
        let place: String

        subscript(key: String) -> String? { options[key]?.values.last }
        /// nil if the key is absent.
        func list(_ key: String) -> [String]? { options[key]?.values }
    }

    /// The keys that have no option on the command line.
    static let endpointsKey = "gorush-endpoints"
    static let notificationsKey = "notifications"

    /// The options of an endpoint.
    static let endpointKeys = [
        "name", "url", "platforms", "services", "apn-topics", "apn-sandbox-topics", "ca", "user", "password-file", "token-file", "headers",
        "payload-profile", "connections", "batch", "timeout",
    ]

    let path: String
    let options: [String: Setting]
    let endpoints: [Entry]
    /// Entries with keys of ``NotificationKey``.
    let notifications: [Entry]

    /// Loads the file that the arguments or the environment name, for the commands that use one.
    ///
    /// - Parameter arguments: the command line, starting with the program's name.
    static func load(_ arguments: [String]) throws(CommandFailure) {
        let arguments = arguments.dropFirst()
        guard let command = arguments.first, ["serve", "doctor", "admin", "config"].contains(command) else { return }
        var path = Invocation.current.environment[Environment.name(of: "config")]
        for (argument, next) in zip(arguments, arguments.dropFirst() + [""]) {
            if argument == "--config" { path = next }
            if argument.hasPrefix("--config=") { path = String(argument.dropFirst("--config=".count)) }
        }
        guard let path, !path.isEmpty else { return Environment.use(nil) }
        Environment.use(try ConfigurationFile(reading: path, known: ServeOption.names))
    }

    /// - Parameter known: the names of the options of serve.
    init(reading path: String, known: Set<String>) throws(CommandFailure) {
        guard let content = FileManager.default.contents(atPath: path) else {
            throw CommandFailure(.data, "configuration \(path) can't be read: is it there, and may this user read it?")
        }
        guard content.count <= 1 << 20, let text = String(data: content, encoding: .utf8) else {
            throw CommandFailure(.data, "configuration \(path) is not a YAML file in UTF-8 of at most 1 MiB")
        }
        try self.init(parsing: text, path: path, known: known)
    }

    init(parsing text: String, path: String, known: Set<String>) throws(CommandFailure) {
        self.path = path
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch let error as YamlError {
            throw CommandFailure(.data, "configuration \(path): \(Self.explain(error))")
        } catch {
            throw CommandFailure(.data, "configuration \(path) is not valid YAML")
        }
        var options: [String: Setting] = [:]
        var endpoints: [Entry] = []
        var notifications: [Entry] = []
        if let root, !Self.isNull(root) {
            guard let mapping = root.mapping else {
                throw CommandFailure(.data, "configuration \(path): it must consist of lines \"option: value\"")
            }
            for (key, value) in mapping {
                let place = Self.place(key, path)
                let name = try Self.known(key, among: known.union([Self.endpointsKey, Self.notificationsKey]), place)
                if name == Self.endpointsKey {
                    guard let list = value.sequence else {
                        throw CommandFailure(.data, "\(place): \(name) must be a list of endpoints")
                    }
                    endpoints = try list.map { item throws(CommandFailure) in
                        try Self.entry(in: item, keys: Set(Self.endpointKeys), "an endpoint", path)
                    }
                } else if name == Self.notificationsKey, !Self.isNull(value) {
                    // A single entry needs no list.
                    let keys = Set(NotificationKey.allCases.map(\.rawValue))
                    notifications = try (value.sequence.map { Array($0) } ?? [value]).map { item throws(CommandFailure) in
                        try Self.entry(in: item, keys: keys, "an entry of notifications", path)
                    }
                } else if let values = try Self.values(of: value, place, name) {
                    options[name] = Setting(values: values, place: place)
                }
            }
        }
        self.options = options
        self.endpoints = endpoints
        self.notifications = notifications
    }

    /// - Parameters:
    ///   - item: an element of a list.
    ///   - keys: the allowed keys.
    ///   - noun: the name of the item, for error messages.
    ///   - path: the file's path.
    private static func entry(in item: Node, keys: Set<String>, _ noun: String, _ path: String) throws(CommandFailure) -> Entry {
        let place = Self.place(item, path)
        guard let mapping = item.mapping else { throw CommandFailure(.data, "\(place): \(noun) must consist of lines \"key: value\"") }
        var options: [String: Setting] = [:]
        for (key, value) in mapping {
            let place = Self.place(key, path)
            let name = try known(key, among: keys, place, hint: "\(noun) has \(keys.sorted().joined(separator: ", "))")
            guard value.mapping == nil else { throw CommandFailure(.data, "\(place): the value of \(name) must be plain, or a list") }
            if let values = try values(of: value, place, name) { options[name] = Setting(values: values, place: place) }
        }
        return Entry(options: options, place: place)
    }

    /// nil for a key without a value, which is treated as absent.
    private static func values(of node: Node, _ place: String, _ name: String) throws(CommandFailure) -> [String]? {
        if isNull(node) { return nil }
        if let scalar = node.scalar { return [scalar.string] }
        if let sequence = node.sequence {
            var values: [String] = []
            for item in sequence {
                guard let scalar = item.scalar else { throw CommandFailure(.data, "\(place): items of \(name) must be plain values") }
                values.append(scalar.string)
            }
            return values
        }
        var values: [String] = []
        for (key, value) in node.mapping ?? [:] {
            guard let key = key.scalar, let value = value.scalar else {
                throw CommandFailure(.data, "\(place): values of \(name) must be plain values")
            }
            values.append("\(key.string)=\(boolean(value.string))")
        }
        return values
    }

    /// YAML parsers disagree on whether a bare `off` is a boolean.
    private static func boolean(_ text: String) -> String { text == "false" || text == "no" ? "off" : text }

    /// - Parameters:
    ///   - key: a key of a mapping.
    ///   - names: the allowed keys.
    ///   - place: file and line.
    ///   - hint: shown if no allowed key is similar.
    private static func known(
        _ key: Node, among names: Set<String>, _ place: String, hint: String = "waku-push config default lists all options"
    ) throws(CommandFailure) -> String {
        guard let name = key.scalar?.string else { throw CommandFailure(.data, "\(place): a key must be a plain word") }
        guard !names.contains(name) else { return name }
        let hint = nearest(to: name, among: names).map { "did you mean \($0)?" } ?? hint
        throw CommandFailure(.data, "\(place): there is no option \(name): \(hint)")
    }

    private static func isNull(_ node: Node) -> Bool {
        node.scalar.map { $0.style == .plain && ["", "~", "null"].contains($0.string) } ?? false
    }

    private static func place(_ node: Node, _ path: String) -> String {
        node.mark.map { "\(path):\($0.line)" } ?? path
    }

    private static func explain(_ error: YamlError) -> String {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _), .composer(_, let problem, let mark, _):
            "line \(mark.line), column \(mark.column): \(problem)"
        case .duplicatedKeysInMapping(let duplicates, _): "duplicate key \(duplicates.sorted().joined(separator: ", "))"
        default: "it is not valid YAML"
        }
    }

    // MARK: Names

    /// The name that was most likely meant; nil if none is similar.
    static func nearest(to name: String, among names: Set<String>) -> String? {
        let near = names.map { ($0, distance(name, $0)) }.min { ($0.1, $0.0) < ($1.1, $1.0) }
        return near.flatMap { $0.1 <= (name.count < 5 ? 2 : 3) ? $0.0 : nil }
    }

    /// The Levenshtein distance: the number of letters to insert, delete or replace.
    private static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left.utf8.prefix(100)), Array(right.utf8))
        var row = Array(0...right.count)
        for (i, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, other) in right.enumerated() {
                let above = row[j + 1]
                row[j + 1] = min(diagonal + (letter == other ? 0 : 1), above + 1, row[j] + 1)
                diagonal = above
            }
        }
        return row[right.count]
    }
}
