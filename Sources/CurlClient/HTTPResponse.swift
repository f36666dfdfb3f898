/// The final answer to a request: no interim 1xx, nothing of a proxy's. Prints its status and size alone.
package struct HTTPResponse: Sendable, CustomStringConvertible, CustomReflectable {
    /// 200 to 599, whatever it is: a status is no error here.
    package let status: Int
    /// In the order they came.
    package let headers: [(name: String, value: String)]
    package let body: [UInt8]

    package init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The first one of this name, in any case of letters.
    package func header(_ name: String) -> String? {
        let name = name.lowercased()
        return headers.first { $0.name.lowercased() == name }?.value
    }

    package var description: String { "status \(status), \(body.count) bytes" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
