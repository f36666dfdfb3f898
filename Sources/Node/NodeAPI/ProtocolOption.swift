package import RateLimits
import Synchronization

/// An option of `serve` that a protocol declares: on the command line, in the environment, in the configuration file, in `--help`, `config check` and
/// `config show`.
public struct ProtocolOption<Value: Sendable>: ProtocolOptionDeclaration {
    public let form: ProtocolOptionForm
    private let parse: @Sendable (String) -> Value?
    private let standard: Value

    private init(
        _ name: String, _ standard: Value, text: String?, _ help: String, allowed: String, isReloadable: Bool,
        limit: RegistrationLimit? = nil,
        parse: @escaping @Sendable (String) -> Value?
    ) {
        form = ProtocolOptionForm(
            name: name, help: help, standard: text, allowed: allowed, isReloadable: isReloadable, limit: limit,
            accepts: { parse($0) != nil })
        self.standard = standard
        self.parse = parse
    }

    fileprivate func value(of text: String?) -> Value { text.flatMap(parse) ?? standard }
}

extension ProtocolOption<Int> {
    /// A whole number.
    ///
    /// - Parameters:
    ///   - name: without dashes; begins with the name of the protocol, so that it differs from those of other protocols.
    ///   - standard: the default.
    ///   - range: the allowed values.
    ///   - help: the sentence in `--help`.
    ///   - isReloadable: whether the protocol uses a new value after SIGHUP; otherwise it takes a restart.
    public static func count(
        _ name: String, _ standard: Int, in range: ClosedRange<Int>, _ help: String, isReloadable: Bool = false
    ) -> Self {
        Self(
            name, standard, text: String(standard), help, allowed: "a whole number from \(range.lowerBound) to \(range.upperBound)",
            isReloadable: isReloadable
        ) { text in Int(text).flatMap { range.contains($0) ? $0 : nil } }
    }
}

extension ProtocolOption<String?> {
    /// A text; nil unless it is given. The parameters are those of ``ProtocolOption/count(_:_:in:_:isReloadable:)``.
    ///
    /// - Parameters:
    ///   - allowed: the allowed values in words, as in `give an https address`.
    ///   - accepts: whether a text is allowed.
    public static func text(
        _ name: String, _ help: String, allowed: String = "a text", isReloadable: Bool = false,
        accepts: @escaping @Sendable (String) -> Bool = { !$0.isEmpty }
    ) -> Self {
        Self(name, nil, text: nil, help, allowed: allowed, isReloadable: isReloadable) { accepts($0) ? .some($0) : nil }
    }
}

extension ProtocolOption<Bool> {
    /// `on` or `off`. The parameters are those of ``ProtocolOption/count(_:_:in:_:isReloadable:)``.
    public static func flag(_ name: String, _ standard: Bool, _ help: String, isReloadable: Bool = false) -> Self {
        Self(name, standard, text: standard ? "on" : "off", help, allowed: "on or off", isReloadable: isReloadable) { text in
            switch text.lowercased() {
            case "on", "true", "yes", "1": true
            case "off", "false", "no", "0": false
            default: nil
            }
        }
    }
}

extension ProtocolOption<Never?> {
    /// A limit of the protocol, which replaces the one of `--limit` for it. The node applies it: see ``RegistrationLimit``. SIGHUP changes it.
    ///
    /// - Parameters:
    ///   - name: as in ``ProtocolOption/count(_:_:in:_:isReloadable:)``.
    ///   - standard: the default, as the value of `--limit`: `10000`, `2/s burst 100`, or `off`.
    ///   - help: the sentence in `--help`.
    public static func limit(_ name: String, _ limit: RegistrationLimit, _ standard: String, _ help: String) -> Self {
        Self(
            name, nil, text: standard, help,
            allowed: limit == .registrationCount
                ? "a number from 1 to 1000000000, or off" : "a rate such as 10/s or 600/min burst 100, or off",
            isReloadable: true, limit: limit
        ) { text in
            var limits = Limits.none
            return (try? limits.set("\(limit.rawValue)=\(text)")) == nil ? nil : .some(nil)
        }
    }
}

/// The limits of a protocol whose devices are in a ``RegistrationTable``, by their names in `--limit`.
///
/// | limit | applies to | above it |
/// |---|---|---|
/// | `messages-by-sender`, `registrations-by-sender` | registrations of an owner | dropped |
/// | `new-registrations` | new owners in total, divided by their device tokens | ``RegistrationResult/failed`` |
/// | `registration-count` | stored owners | a new one displaces the oldest that was never notified, or ``RegistrationResult/full`` |
/// | `notifications-by-target` | notifications of a device | dropped |
/// | `notifications` | notifications in total, divided by owner | dropped |
///
/// `--allow-keys`, `--deny-keys` and `--limit store-mib` apply too.
public enum RegistrationLimit: String, Sendable {
    case messagesBySender = "messages-by-sender"
    case registrationsBySender = "registrations-by-sender"
    case newRegistrations = "new-registrations"
    case registrationCount = "registration-count"
    case notificationsByTarget = "notifications-by-target"
    case notifications
}

/// The declaration of an option, whatever the type of its value.
public protocol ProtocolOptionDeclaration: Sendable {
    var form: ProtocolOptionForm { get }
}

/// The parts of an option that commands use: name, help, default and allowed values.
public struct ProtocolOptionForm: Sendable {
    package let name: String
    package let help: String
    /// nil if there is none.
    package let standard: String?
    /// Completes `give …`.
    package let allowed: String
    package let isReloadable: Bool
    package let limit: RegistrationLimit?
    package let accepts: @Sendable (String) -> Bool
}

/// The values of a program's ``ProtocolOption``s. Thread-safe.
public final class ProtocolOptionValues: Sendable {
    /// By name; those without a default are missing unless they are given.
    private let texts: Mutex<[String: String]>

    package init(_ texts: [String: String] = [:]) {
        self.texts = Mutex(texts)
    }

    /// The current value of an option: a later one may differ if it is reloadable.
    public subscript<Value>(_ option: ProtocolOption<Value>) -> Value {
        option.value(of: texts.withLock { $0[option.form.name] })
    }

    /// Replaces the values of these options.
    package func replace(_ names: some Sequence<String>, from values: [String: String]) {
        texts.withLock { texts in
            for name in names { texts[name] = values[name] }
        }
    }
}

extension Limits {
    /// Applies the limits that a protocol declares as options.
    ///
    /// - Parameter values: by name; the default applies to missing ones.
    package mutating func apply(_ options: [any ProtocolOptionDeclaration], _ values: [String: String]) throws(Problem) {
        for form in options.map(\.form) {
            guard let limit = form.limit, let text = values[form.name] ?? form.standard else { continue }
            try set("\(limit.rawValue)=\(text)")
        }
    }
}
