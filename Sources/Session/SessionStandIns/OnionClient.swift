package import SessionProtocol
package import WakuCrypto
import Core

/// The client side of onion requests, version 4, to a server with a known key. Each request has an ephemeral key.
package struct OnionClient: Sendable {
    /// The body of a request, and the key that decrypts its answer.
    package struct Request: Sendable {
        package let body: [UInt8]
        /// The client's, 32 bytes.
        package let ephemeralKey: [UInt8]
        package let box: OnionBox
    }

    /// The content of an answer.
    package struct Answer: Hashable, Sendable {
        package let code: Int
        package let body: [UInt8]
    }

    /// The answer was not encrypted by the server for this request, or is not a valid answer to an onion request.
    package struct Malformed: Error, Hashable, Sendable {}

    private let sodium: Sodium
    private let serverKey: [UInt8]

    /// - Parameter serverKey: The server's X25519 key, 32 bytes.
    package init(serverKey: [UInt8], sodium: Sodium) {
        (self.serverKey, self.sodium) = (serverKey, sodium)
    }

    /// - Parameters:
    ///   - method: `POST` or `GET`.
    ///   - encryption: The cipher of the request and its answer.
    /// - Throws: `CryptoError.invalidKey` if the server's key is invalid.
    package func request(
        _ method: String, _ endpoint: String, body: [UInt8], encryption: OnionEncryption
    ) throws(CryptoError) -> Request {
        let head = #"{"method":"\#(method)","endpoint":"\#(endpoint)","headers":{"content-type":"application/json"}}"#
        return try request(
            BencodeValue.list([.text(head), .bytes(body)]).encoded(), encryption: encryption,
            named: encryption == .xChaCha20 ? "xchacha20" : "aes-gcm")
    }

    /// A request with any content.
    ///
    /// - Parameter name: `enc_type`; nil for none.
    /// - Throws: as above.
    package func request(_ plain: [UInt8], encryption: OnionEncryption, named name: String?) throws(CryptoError) -> Request {
        let secret = SecretBytes.random(count: OnionKey.byteCount)
        let ephemeralKey = sodium.x25519PublicKey(of: secret)
        let box = OnionBox(
            encryption, shared: try sodium.sharedSecret(secret, with: serverKey), clientKey: ephemeralKey, serverKey: serverKey,
            sodium: sodium)
        let type = name.map { #","enc_type":"\#($0)""# } ?? ""
        let body = Self.frame(box.seal(plain), #"{"ephemeral_key":"\#(hexString(ephemeralKey))"\#(type)}"#)
        return Request(body: body, ephemeralKey: ephemeralKey, box: box)
    }

    package static func frame(_ sealed: [UInt8], _ trailer: String) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: sealed.count >> (8 * $0)) } + sealed + Array(trailer.utf8)
    }

    package func open(_ answer: [UInt8], to request: Request) throws(Malformed) -> Answer {
        guard let plain = request.box.open(answer[...]),
            let parts = try? BencodeValue(parsing: plain[...], maximumValueCount: 3).list, parts.count == 2,
            let head = parts[0].bytes, let body = parts[1].bytes,
            let code = (try? JSONValue(parsing: head))?.object?["code"]?.unsignedInteger.flatMap({ Int(exactly: $0) })
        else { throw Malformed() }
        return Answer(code: code, body: Array(body))
    }
}
