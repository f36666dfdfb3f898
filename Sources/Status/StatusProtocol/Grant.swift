public import WakuCrypto

/// A client's signature that lets one server notify it: over Keccak-256(compressed client key ‖ compressed server key ‖ access token).
public enum Grant {
    static func digest(client: PublicKey, server: PublicKey, accessToken: AccessToken) -> [UInt8] {
        Keccak256.hash(client.compressed + server.compressed + accessToken.bytes)
    }

    /// Signs a grant: 65 bytes, `R ‖ S ‖ V` with V from 0 to 3.
    ///
    /// - Parameters:
    ///   - server: The only server that the grant is valid for.
    ///   - accessToken: Signed as given: a grant for the same UUID in another spelling is a different one.
    public static func make(client: PrivateKey, server: PublicKey, accessToken: AccessToken) -> [UInt8] {
        Signature(of: digest(client: client.publicKey, server: server, accessToken: accessToken), by: client).bytes
    }

    /// False unless the grant has 65 bytes with V from 0 to 3 and recovers to the client's key. V of 27 and 28 is refused.
    public static func isValid(_ grant: [UInt8], client: PublicKey, server: PublicKey, accessToken: AccessToken) -> Bool {
        proof(of: grant, client: client, server: server, accessToken: accessToken) != nil
    }

    /// A grant that was found valid, with the digest of all that it was found valid for.
    package struct Proof: Hashable, Sendable {
        let digest: [UInt8]
        let grant: [UInt8]
    }

    /// nil if the grant is not valid: see ``isValid(_:client:server:accessToken:)``.
    ///
    /// - Parameter known: an earlier proof. The signature is not verified again if grant, keys and token are the same byte for byte.
    package static func proof(
        of grant: [UInt8], client: PublicKey, server: PublicKey, accessToken: AccessToken, known: Proof? = nil
    ) -> Proof? {
        let proof = Proof(digest: digest(client: client, server: server, accessToken: accessToken), grant: grant)
        if proof == known { return proof }
        let signer = try? Signature(parsing: grant).signer(of: proof.digest)
        return signer == client ? proof : nil
    }
}
