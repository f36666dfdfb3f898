import Foundation
import WakuPushNode

/// A device's registration, sent as ECIES(signature(65) ‖ JSON) to the node's key. The signature covers the node's key and the JSON.
struct Registration: Codable, Sendable {
    static let topic = ContentTopic(rawValue: "/topic-push/1/registrations/json")

    /// Higher than in the owner's earlier registrations.
    var version: Int64
    /// A Firebase token.
    var token: String
    /// At most 20; none unregisters the device.
    var topics: [String]
    /// Seconds since 1970.
    var end: Int64
    var text: String

    func sealed(by owner: PrivateKey, to node: PublicKey) throws -> [UInt8] {
        let json = Array(try JSONEncoder().encode(self))
        return ECIES.seal(Signature(of: Keccak256.hash(node.compressed + json), by: owner).bytes + json, to: node)
    }

    /// Returns nil unless the payload is a valid registration to one of the keys.
    static func open(_ payload: [UInt8], with keys: [PrivateKey]) -> (Registration, owner: [UInt8])? {
        for key in keys {
            guard let opened = try? ECIES.open(payload, with: key), opened.count > Signature.byteCount else { continue }
            let json = Array(opened.dropFirst(Signature.byteCount))
            let digest = Keccak256.hash(key.publicKey.compressed + json)
            guard let owner = try? Signature(parsing: opened.prefix(Signature.byteCount)).signer(of: digest),
                let asked = try? JSONDecoder().decode(Registration.self, from: Data(json)), asked.version > 0,
                (0..<9_000_000_000).contains(asked.end), asked.topics.count <= 20
            else { return nil }
            return (asked, owner.compressed)
        }
        return nil
    }
}
