/// A piece of a page. What is interpolated into it is escaped, unless it is HTML itself: no text can become markup.
struct HTML: ExpressibleByStringInterpolation, Sendable {
    let text: String

    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity)
        }

        mutating func appendLiteral(_ literal: String) { text += literal }
        mutating func appendInterpolation(_ html: HTML) { text += html.text }
        mutating func appendInterpolation(_ list: [HTML]) { for html in list { text += html.text } }
        mutating func appendInterpolation(_ number: Int) { text += "\(number)" }
        mutating func appendInterpolation(_ plain: String) { text += HTML.escaped(plain) }
    }

    init(stringLiteral value: String) { text = value }
    init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

    /// - Parameter markup: a constant of the program's.
    init(trusted markup: StaticString) { text = "\(markup)" }

    /// Fit for contents and for attributes in quotes.
    static func escaped(_ plain: String) -> String {
        var escaped = ""
        for scalar in plain.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            // Control characters have no place in a page.
            case _ where scalar.value < 0x20 && scalar != "\n" && scalar != "\t": escaped += "\u{FFFD}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
