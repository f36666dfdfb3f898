import Foundation

/// Where a node's REST API is: `http` or `https`, a host, perhaps a port and a path.
public struct NodeAddress: Hashable, Sendable, CustomStringConvertible {
    /// Without a slash at its end.
    let base: String

    /// - Throws: ``NwakuRelayError`` with `invalidAddress` or `credentialsInAddress`
    public init(_ url: String) throws(NwakuRelayError) {
        guard var parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = parts.host, !host.isEmpty
        else {
            throw NwakuRelayError(
                code: .invalidAddress, message: "the node's address is not an http or https URL: give one like http://127.0.0.1:8645")
        }
        // nwaku asks for none, and a URL ends in logs and process lists.
        guard parts.user == nil, parts.password == nil else {
            throw NwakuRelayError(
                code: .credentialsInAddress,
                message: "the node's address holds a user or a password: take it out, nwaku's REST API knows neither")
        }
        guard parts.query == nil, parts.fragment == nil, parts.port.map({ (1...65_535).contains($0) }) ?? true else {
            throw NwakuRelayError(
                code: .invalidAddress,
                message: "the node's address has a query, a fragment or an impossible port: give one like http://127.0.0.1:8645")
        }
        parts.scheme = scheme
        while parts.path.hasSuffix("/") { parts.path.removeLast() }
        guard let text = parts.string else {
            throw NwakuRelayError(code: .invalidAddress, message: "the node's address is not a URL: give one like http://127.0.0.1:8645")
        }
        base = text
    }

    public var description: String { base }
}

/// Everything but unreserved characters as `%XX`: fit for one piece of a path or one value of a query.
func percentEncoded(_ text: String) -> String {
    var result: [UInt8] = []
    for byte in text.utf8 {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
            result.append(byte)
        default:
            let digits = Array("0123456789ABCDEF".utf8)
            result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
    return String(decoding: result, as: UTF8.self)
}
