import NodeAPI
public import ArgumentParser
public import Delivery
import WakuCrypto

/// A duration such as `300ms`, `5s`, `10m`, `24h` or `90d`. The unit is required: a bare number may be meant in seconds (`--timeout`) or in milliseconds
/// (`--poll-interval`).
package struct DurationArgument: DescribedArgument, CustomStringConvertible {
    static let allowedValues = "a duration such as 300ms, 5s, 10m, 24h or 90d, at most 366d"

    package let duration: Duration
    package let description: String

    package init?(argument: String) {
        let units: [(String, Double)] = [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)]
        guard let (suffix, factor) = units.first(where: { argument.hasSuffix($0.0) }), let count = UInt32(argument.dropLast(suffix.count)),
            count > 0, Double(count) * factor <= 366 * 24 * 3600
        else { return nil }
        duration = .milliseconds(Int64((Double(count) * factor * 1000).rounded()))
        description = argument
    }

    /// - Precondition: `text` is a duration.
    package init(_ text: StaticString) {
        guard let value = Self(argument: "\(text)") else { preconditionFailure("\(text) is not a duration") }
        self = value
    }

    package var defaultValueDescription: String { description }
}

extension Option where Value == DurationArgument {
    /// An option whose error names the allowed form. ArgumentParser shows no default of an option with a transformation, so the help has it.
    init(wrappedValue: DurationArgument, duration help: String) {
        self.init(wrappedValue: wrappedValue, help: "\(help) [default: \(wrappedValue)]", transform: DurationArgument.parse)
    }
}

extension DurationArgument: Comparable {
    package static func == (left: Self, right: Self) -> Bool { left.duration == right.duration }
    package static func < (left: Self, right: Self) -> Bool { left.duration < right.duration }
}

extension ClosedRange where Bound: CustomStringConvertible {
    /// For help and error messages.
    var inWords: String { "from \(lowerBound) to \(upperBound)" }
}

/// A duration, or `off` or `0` (with or without a unit) for none.
struct OptionalDurationArgument: DescribedArgument {
    static let allowedValues = "a duration such as 300ms, 5s, 10m, 24h or 90d, at most 366d; or off"

    let duration: Duration?
    let defaultValueDescription: String

    init(_ duration: DurationArgument?) {
        self.duration = duration?.duration
        defaultValueDescription = duration?.description ?? "off"
    }

    init?(argument: String) {
        if ["off", "0", "0ms", "0s", "0m", "0h", "0d"].contains(argument) {
            self.init(nil)
        } else if let duration = DurationArgument(argument: argument) {
            self.init(duration)
        } else {
            return nil
        }
    }
}

/// `on` or `off`, or another spelling of a boolean.
enum SwitchArgument: String, DescribedArgument {
    static let allowedValues = "on or off"

    case on, off

    init?(argument: String) {
        switch argument.lowercased() {
        case "on", "true", "yes", "1": self = .on
        case "off", "false", "no", "0": self = .off
        default: return nil
        }
    }
}

/// A duration, `off` (or `0`), or `auto`.
enum SilenceArgument: DescribedArgument {
    static let allowedValues = "a duration such as 90s, 10m or 24h; off, or auto"

    case automatic, off
    case after(Duration)

    init?(argument: String) {
        switch argument {
        case "auto": self = .automatic
        case "0", "off": self = .off
        default:
            guard let duration = DurationArgument(argument: argument)?.duration else { return nil }
            self = .after(duration)
        }
    }

    var defaultValueDescription: String { "auto" }

    /// - Parameter isAlone: the node receives messages of its own clients only, so silence is normal.
    func limit(isAlone: Bool) -> Duration? {
        switch self {
        case .automatic: isAlone ? nil : .seconds(600)
        case .off: nil
        case .after(let duration): duration
        }
    }
}

struct AddressArgument: DescribedArgument {
    static let allowedValues = "an address and a port such as 127.0.0.1:9090 or [::1]:9090"

    let address: SocketAddress

    init(_ address: SocketAddress) {
        self.address = address
    }

    init?(argument: String) {
        guard let address = SocketAddress(parsing: argument) else { return nil }
        self.address = address
    }

    var defaultValueDescription: String { address.description }
}

/// A public key: 130 hexadecimal digits, or 66 if compressed, with or without 0x.
struct PublicKeyArgument: DescribedArgument {
    static let allowedValues = "a public key in hexadecimal digits, as identity show --public-key prints it"

    let key: PublicKey

    init?(argument: String) {
        guard let key = try? PublicKey(hex: argument) else { return nil }
        self.key = key
    }
}

extension PublicKey {
    /// In output for people and scripts: `0x04…`.
    var text: String { "0x" + hex }
}

extension PayloadProfile: ExpressibleByArgument {}

extension ContentKind: ExpressibleByArgument {}
