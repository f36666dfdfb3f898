import ArgumentParser
import NodeAPI

/// The values that an option allows.
struct ValueForm: Sendable {
    /// Completes `give …`.
    let allowed: String
    let accepts: @Sendable (String) -> Bool

    init<Value: ExpressibleByArgument & Sendable>(_ type: Value.Type) {
        allowed = Self.allowed(type)
        accepts = { Value(argument: $0) != nil }
    }

    init(_ form: ProtocolOptionForm) {
        (allowed, accepts) = (form.allowed, form.accepts)
    }

    static func allowed(_ type: (some ExpressibleByArgument).Type) -> String {
        if let type = type as? any DescribedArgument.Type { return type.allowedValues }
        if !type.allValueStrings.isEmpty { return type.allValueStrings.joined(separator: ", ") }
        return type == Int.self ? "a whole number" : "a value as in --help"
    }

    /// The message for a value that is not allowed.
    ///
    /// - Parameter source: the option, an environment variable, or file, line and key.
    static func problem(_ source: String, option: String, value: String, allowed: String) -> CommandFailure {
        let shown = value.count > 60 ? value.prefix(60) + "…" : value
        let target = source == "--\(option)" ? "" : " for --\(option)"
        return CommandFailure(.usage, "\(source) has an invalid value\(target), \"\(shown)\": give \(allowed)")
    }
}

/// A type of options whose values are described in words.
protocol DescribedArgument: ExpressibleByArgument {
    /// Completes `give …`.
    static var allowedValues: String { get }
}

extension DescribedArgument {
    /// - Throws: `ValidationError` that describes a valid value: users give files of keys.
    static func parse(_ text: String) throws -> Self {
        guard let argument = Self(argument: text) else { throw ValidationError("give \(allowedValues)") }
        return argument
    }
}
