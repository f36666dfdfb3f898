public import WakuCrypto

/// A client's signature that lets one server notify it: over Keccak-256(compressed client key ‖ compressed server key ‖ access token).
public enum Grant {
    static func digest(client: PublicKey, server: PublicKey, accessToken: AccessToken) -> [UInt8] {
        Keccak256.hash(client.compressed + server.compressed + accessToken.bytes)
    }

    /// Signs a grant: 65 bytes, `R ‖ S ‖ V` with V from 0 to 3.
    ///
    /// - Parameters:
    ///   - client: The registrant's key.
    ///   - server: The only server that the grant is valid for.
    ///   - accessToken: Signed as given: a grant for the same UUID in another spelling is a different one.
    public static func make(client: PrivateKey, server: PublicKey, accessToken: AccessToken) -> [UInt8] {
        Signature(of: digest(client: client.publicKey, server: server, accessToken: accessToken), by: client).bytes
    }

    /// False unless the grant has 65 bytes with V from 0 to 3 and recovers to the client's key. V of 27 and 28 is refused.
    public static func isValid(_ grant: [UInt8], client: PublicKey, server: PublicKey, accessToken: AccessToken) -> Bool {
        let signer = try? Signature(parsing: grant).signer(of: digest(client: client, server: server, accessToken: accessToken))
        return signer == client
    }
}
