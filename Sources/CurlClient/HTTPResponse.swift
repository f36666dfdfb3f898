/// The final response to a request, without interim 1xx responses and a proxy's headers. Prints only its status and size.
public struct HTTPResponse: Sendable, CustomStringConvertible, CustomReflectable {
    /// 200 to 599. A status is not treated as an error here.
    public let status: Int
    /// In the order received.
    public let headers: [(name: String, value: String)]
    public let body: [UInt8]

    public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The first header of this name, case-insensitive.
    public func header(_ name: String) -> String? {
        let name = name.lowercased()
        return headers.first { $0.name.lowercased() == name }?.value
    }

    public var description: String { "status \(status), \(body.count) bytes" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
