import Foundation
import Yams

/// A YAML file of options. Its keys are the names of the options of serve, without leading dashes, `gorush-endpoints` and `notifications`. A
/// list repeats an option; a mapping repeats it with `key=value` for each entry.
struct ConfigurationFile {
    struct Setting: Equatable {
        let values: [String]
        /// File and line of the key.
        let place: String
        /// File and line of each value.
        let places: [String]

        /// - Parameter places: nil if all values are on the line of the key.
        init(values: [String], place: String, places: [String]? = nil) {
            self.values = values
            self.place = place
            self.places = places ?? values.map { _ in place }
        }
    }

    /// An entry of `gorush-endpoints` or `notifications`.
    struct Entry: Equatable {
        let options: [String: Setting]
        let place: String

        /// An entry for each key: the key with its value, and `others`.
        func parts(with others: [String: String]) -> [Entry] {
            let others = others.mapValues { Setting(values: [$0], place: place) }
            return options.keys.sorted().map { key in
                Entry(options: others.merging(options.filter { $0.key == key }) { _, own in own }, place: place)
            }
        }
    }

    /// The keys that have no option on the command line.
    static let endpointsKey = "gorush-endpoints"
    static let notificationsKey = "notifications"

    let path: String
    let options: [String: Setting]
    /// Options without a value: they count as absent, and their defaults apply.
    let unset: [(name: String, place: String)]
    /// Entries with keys of ``EndpointKey``.
    let endpoints: [Entry]
    /// Entries with keys of ``NotificationKey``.
    let notifications: [Entry]
    /// Keys and values that can't be read. The others are in ``options``, ``endpoints`` and ``notifications``.
    let problems: [CommandFailure]

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
        Environment.use(try ConfigurationFile(reading: path, known: ServeOption.names, lists: ServeOption.listNames))
    }

    /// - Parameters:
    ///   - known: the names of the options of serve.
    ///   - lists: the options with several values.
    init(reading path: String, known: Set<String>, lists: Set<String>) throws(CommandFailure) {
        guard let content = FileManager.default.contents(atPath: path) else {
            throw CommandFailure(.data, "configuration \(path) can't be read: is it there, a regular file, and may this user read it?")
        }
        guard content.count <= 1 << 20, let text = String(data: content, encoding: .utf8) else {
            throw CommandFailure(.data, "configuration \(path) is not a YAML file in UTF-8 of at most 1 MiB")
        }
        try self.init(parsing: text, path: path, known: known, lists: lists)
    }

    init(parsing text: String, path: String, known: Set<String>, lists: Set<String>) throws(CommandFailure) {
        self.path = path
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch let error as YamlError {
            throw CommandFailure(.data, "configuration \(path): \(Self.explain(error, text))")
        } catch {
            throw CommandFailure(.data, "configuration \(path) is not valid YAML")
        }
        var options: [String: Setting] = [:]
        var endpoints: [Entry] = []
        var notifications: [Entry] = []
        var unset: [(name: String, place: String)] = []
        let failures = ConfigurationFailures()
        if let root, !Self.isNull(root) {
            guard let mapping = root.mapping else {
                throw CommandFailure(.data, "configuration \(path): it must consist of lines \"option: value\"")
            }
            for (key, value) in mapping {
                let place = Self.place(key, path)
                failures.check(at: nil) {
                    let name = try Self.known(key, among: known.union([Self.endpointsKey, Self.notificationsKey]), place)
                    if name == Self.endpointsKey {
                        guard let list = value.sequence else {
                            throw CommandFailure(.data, "\(place): \(name) must be a list of endpoints")
                        }
                        let keys = Set(EndpointKey.allCases.map(\.rawValue))
                        let lists = Set(EndpointKey.allCases.filter(\.isList).map(\.rawValue))
                        endpoints = list.compactMap { Self.entry(in: $0, keys: keys, lists: lists, "an endpoint", path, failures) }
                    } else if name == Self.notificationsKey, !Self.isNull(value) {
                        // A single entry needs no list.
                        let keys = Set(NotificationKey.allCases.map(\.rawValue))
                        notifications = (value.sequence.map { Array($0) } ?? [value]).compactMap {
                            // NotificationEntry checks which of them may have several values.
                            Self.entry(in: $0, keys: keys, lists: keys, "an entry of notifications", path, failures)
                        }
                    } else if Self.isNull(value) {
                        unset.append((name, place))
                    } else {
                        options[name] = try Self.setting(value, place, name, isList: lists.contains(name), path)
                    }
                }
            }
        }
        self.options = options
        self.unset = unset
        self.endpoints = endpoints
        self.notifications = notifications
        problems = failures.failures
    }

    /// - Parameter noun: the name of the item, for error messages.
    /// - Returns: the entry without the keys that can't be read; nil if it has no keys.
    private static func entry(
        in item: Node, keys: Set<String>, lists: Set<String>, _ noun: String, _ path: String, _ failures: ConfigurationFailures
    ) -> Entry? {
        let place = Self.place(item, path)
        return failures.check(at: nil) {
            guard let mapping = item.mapping else { throw CommandFailure(.data, "\(place): \(noun) must consist of lines \"key: value\"") }
            var options: [String: Setting] = [:]
            for (key, value) in mapping {
                let place = Self.place(key, path)
                failures.check(at: nil) {
                    let name = try known(key, among: keys, place, hint: "\(noun) has \(keys.sorted().joined(separator: ", "))")
                    guard value.mapping == nil else {
                        throw CommandFailure(.data, "\(place): the value of \(name) must be plain, or a list")
                    }
                    // It may be a secret that a template left out.
                    guard !isNull(value) else {
                        throw CommandFailure(.data, "\(place): \(name) has no value: give it one, or remove the key")
                    }
                    options[name] = try setting(value, place, name, isList: lists.contains(name), path)
                }
            }
            return Entry(options: options, place: place)
        }
    }

    private static func setting(
        _ node: Node, _ place: String, _ name: String, isList: Bool, _ path: String
    ) throws(CommandFailure) -> Setting {
        if let scalar = node.scalar { return Setting(values: [scalar.string], place: place) }
        guard isList else { throw CommandFailure(.data, "\(place): \(name) must be one value, not a list") }
        var (values, places) = ([String](), [String]())
        if let sequence = node.sequence {
            for item in sequence {
                let itemPlace = Self.place(item, path)
                guard let scalar = item.scalar else { throw CommandFailure(.data, "\(itemPlace): items of \(name) must be plain values") }
                values.append(scalar.string)
                places.append(itemPlace)
            }
        }
        for (key, value) in node.mapping ?? [:] {
            let itemPlace = Self.place(key, path)
            guard let key = key.scalar, let value = value.scalar else {
                throw CommandFailure(.data, "\(itemPlace): values of \(name) must be plain values")
            }
            values.append("\(key.string)=\(boolean(value.string))")
            places.append(itemPlace)
        }
        return Setting(values: values, place: place, places: places)
    }

    /// YAML parsers disagree on whether a bare `off` is a boolean.
    private static func boolean(_ text: String) -> String { text == "false" || text == "no" ? "off" : text }

    /// - Parameters:
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

    private static func explain(_ error: YamlError, _ text: String) -> String {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _), .composer(_, let problem, let mark, _):
            "line \(mark.line), column \(mark.column): \(problem)"
        case .duplicatedKeysInMapping(let duplicates, _): duplicates.sorted().map { duplicate($0, in: text) }.joined(separator: "; ")
        default: "it is not valid YAML"
        }
    }

    /// The parser has only the line of the mapping.
    private static func duplicate(_ key: String, in text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().filter { _, line in
            line.trimmingCharacters(in: .whitespaces).hasPrefix(key + ":")
        }
        let places = lines.count > 1 ? " on lines \(lines.map { "\($0.offset + 1)" }.joined(separator: ", "))" : ""
        return "duplicate key \(key)\(places): remove all but one"
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
