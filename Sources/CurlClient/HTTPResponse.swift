/// The final answer to a request: no interim 1xx, nothing of a proxy's. Prints its status and size alone.
public struct HTTPResponse: Sendable, CustomStringConvertible, CustomReflectable {
    /// 200 to 599, whatever it is: a status is no error here.
    public let status: Int
    /// In the order they came.
    public let headers: [(name: String, value: String)]
    public let body: [UInt8]

    public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The first one of this name, in any case of letters.
    public func header(_ name: String) -> String? {
        let name = name.lowercased()
        return headers.first { $0.name.lowercased() == name }?.value
    }

    public var description: String { "status \(status), \(body.count) bytes" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
