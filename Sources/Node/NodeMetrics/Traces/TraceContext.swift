/// The position of a span in a trace: W3C Trace Context, level 1. Ids are random and say nothing about the message.
package struct TraceContext: Hashable, Sendable {
    /// The trace of the current task, which the requests that it sends belong to; nil when nothing is traced.
    @TaskLocal package static var current: TraceContext?
    /// The header of HTTP requests that carries it.
    package static let header = "traceparent"

    /// The halves of the trace's id, not both 0.
    package let high: UInt64
    package let low: UInt64
    /// The id of a span, not 0.
    package let span: UInt64
    /// Whether the sender records the trace.
    package let isSampled: Bool

    package init(high: UInt64, low: UInt64, span: UInt64, isSampled: Bool) {
        (self.high, self.low, self.span, self.isSampled) = (high, low, span, isSampled)
    }

    /// Parses a `traceparent` header:
    ///
    ///     version(2) - trace id(32) - span id(16) - flags(2)
    ///
    /// All are hexadecimal digits in lower case. Versions above 00 may append fields, which are ignored. nil for other texts, and for ids of zeros.
    package init?(traceparent text: some StringProtocol) {
        let bytes = Array(text.utf8.prefix(56))
        let dash = UInt8(ascii: "-")
        guard bytes.count >= 55, bytes[2] == dash, bytes[35] == dash, bytes[52] == dash,
            let version = Self.number(bytes[..<2]), version < 0xFF, bytes.count == 55 || version > 0 && bytes[55] == dash,
            let high = Self.number(bytes[3..<19]), let low = Self.number(bytes[19..<35]), high | low != 0,
            let span = Self.number(bytes[36..<52]), span != 0, let flags = Self.number(bytes[53..<55])
        else { return nil }
        self.init(high: high, low: low, span: span, isSampled: flags & 1 == 1)
    }

    package var traceparent: String {
        "00-\(Self.digits(high))\(Self.digits(low))-\(Self.digits(span))-\(isSampled ? "01" : "00")"
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for digit in digits {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt64(digit - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return value
    }

    private static func digits(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
