import Core
public import WakuCrypto

/// A contact code advertisement with its owner's signature, in the form of a Waku payload.
///
///     ProtocolMessage (deployed; a bare envelope is accepted too) ‖ ApplicationMetadataMessage, type 15 ‖ ContactCodeAdvertisement
///
/// Only the envelope's signature identifies the owner: the Waku payload may be signed by another key.
public struct SignedAdvertisement: Sendable {
    /// The `type` of its ApplicationMetadataMessage.
    public static let envelopeType: UInt32 = 15

    /// The owner of the devices, recovered from the signature.
    public let owner: PublicKey
    /// The owner's installation that published the advertisement; nil in a bare envelope. Not covered by the owner's signature, unless the owner
    /// signed the Waku payload as well, as deployed clients do.
    public let installationID: InstallationID?
    /// Covered by the owner's signature. The grants in its rows are not checked yet.
    public let advertisement: ContactCodeAdvertisement

    /// - Throws: ``EnvelopeError``, with `otherKind` for messages that are not advertisements.
    public init(parsing data: [UInt8]) throws(EnvelopeError) {
        try self.init(parsing: data, of: nil)
    }

    /// - Parameter registrant: If another key signed it, the rows are not parsed, and left out; nil for any signer.
    package init(parsing data: [UInt8], of registrant: PublicKey?) throws(EnvelopeError) {
        let wrapping = try? ProtocolMessage(parsing: data)
        let isWrapped = wrapping.map { !$0.publicMessage.isEmpty } ?? false
        let envelope = isWrapped ? wrapping?.publicMessage ?? [] : data
        let (signer, payload) = try MetadataEnvelope.signed(type: Self.envelopeType, in: envelope)
        owner = signer
        let isWanted = registrant == nil || signer == registrant
        do { advertisement = try ContactCodeAdvertisement(parsing: isWanted ? payload : []) } catch { throw .malformed }
        installationID = isWrapped ? wrapping?.installationID : nil
    }

    /// The wrapped advertisement, for a Waku payload.
    ///
    /// - Parameters:
    ///   - installationID: The installation that publishes it.
    ///   - bundles: Encoded key bundles of the secure transport.
    ///   - key: The owner's key.
    public static func encode(
        _ advertisement: ContactCodeAdvertisement, from installationID: InstallationID, bundles: [[UInt8]] = [], signedBy key: PrivateKey
    ) -> [UInt8] {
        let payload = advertisement.encoded()
        let envelope = MetadataEnvelope.encode(type: envelopeType, payload: payload, signedBy: key)
        return ProtocolMessage(installationID: installationID, bundles: bundles, publicMessage: envelope).encoded()
    }
}
