/// Vectors of Web Push encryption; see `Vectors/README.md`. Values are base64url.
package struct WebPushVectors: Decodable, Sendable {
    package static let recorded: WebPushVectors = recordedVectors("webpush")

    package let vectors: [Message]

    package struct Message: Decodable, Sendable, CustomStringConvertible {
        package let name: String
        package let plaintext: String
        package let asPrivate: String
        package let asPublic: String
        package let uaPrivate: String
        package let uaPublic: String
        package let auth: String
        package let salt: String
        package let body: String

        package var description: String { name }
    }
}
