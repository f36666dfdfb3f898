package import Core

/// The final response to a request, without interim 1xx responses and a proxy's headers. Prints only its status and size.
package struct HTTPResponse: Sendable, CustomStringConvertible, CustomReflectable {
    /// 200 to 599. A status is not treated as an error here.
    package let status: Int
    /// In the order received.
    package var headers: [(name: String, value: String)] = []
    package var body: [UInt8] = []
    /// The server's; nil unless ``CurlConfiguration/destinations`` restricts addresses.
    package var address: IPAddress?
    /// When the server's certificate expires, in seconds since 1970; nil without TLS, or ``CurlConfiguration/readsCertificates``.
    package var certificateEnd: Int?

    /// The first header of this name, case-insensitive.
    package func header(_ name: String) -> String? {
        let name = name.lowercased()
        return headers.first { $0.name.lowercased() == name }?.value
    }

    package var description: String { "status \(status), \(body.count) bytes" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
