/// A subscribed device of an account.
package struct DevicePlace: Hashable, Sendable {
    /// The key that signed its subscription.
    package enum Signer: Hashable, Sendable {
        case account
        /// The member's key, or the subkey's tag.
        case delegate([UInt8])
        /// The stored row can't be read.
        case unknown

        package init(_ delegation: Delegation) {
            switch delegation {
            case .none: self = .account
            case .subaccount(let token, _): self = .delegate(Array(token.bytes.dropFirst(4)))
            case .subkey(let tag): self = .delegate(tag)
            }
        }
    }

    /// The name of the subscription.
    package let name: [UInt8]
    /// Its row; higher ones are newer.
    package let row: Int64
    package let signer: Signer
    /// `sig_ts`, Unix seconds.
    package let signedAt: Int64
    /// Whether gorush has accepted a notification for it.
    package let wasDelivered: Bool
    /// The mark of its push service; nil unless its service is Web Push, or if it is unknown.
    package let origin: Int64?

    package init(name: [UInt8], row: Int64, signer: Signer, signedAt: Int64, wasDelivered: Bool, origin: Int64? = nil) {
        (self.name, self.row, self.signer, self.signedAt, self.wasDelivered) = (name, row, signer, signedAt, wasDelivered)
        self.origin = origin
    }
}

/// Decides which device of an account without a free place makes room for a new one.
///
/// Storage servers see the signature of each subscription, and it does not cover the token: they can repeat it for any number of devices of their own.
/// So a signature is no proof of the account, and places are shared among **holders**: each signature of the account's own key, and each delegated key.
/// Signatures are told apart by `sig_ts`; those within ``sameSignature`` seconds count as one.
///
/// - The holder with most places loses one, the new device included. So one signature, or one group member, never displaces the others.
/// - Among holders with equally many, a delegated key loses before the account, then the one with no delivered device, then the older `sig_ts`.
///   So a device that the account itself signs for always finds room.
/// - Within a delegated key, a device that was not delivered loses first, unless its signature is the key's newest and made for it alone; then one of
///   the signature with most devices; then one of the older signature.
/// - Within a signature, a device that was not delivered loses first, then the newer row: the first device is the one that it was made for.
package struct DevicePlaces: Sendable {
    /// Seconds between signatures that count as one.
    package static let sameSignature: Int64 = 2

    package enum Room: Hashable, Sendable {
        /// There is room if the subscription with this name ends.
        case replacing(DevicePlace)
        /// The new device itself has the weakest claim.
        case none
    }

    /// The devices of a holder, by signature, older signatures first.
    private typealias Holder = [[DevicePlace]]

    private var places: [DevicePlace]

    package init(_ places: [DevicePlace]) {
        self.places = places
    }

    package mutating func remove(_ name: [UInt8]) {
        places.removeAll { $0.name == name }
    }

    package mutating func add(_ place: DevicePlace) {
        places.append(place)
    }

    /// - Parameters:
    ///   - new: a device that has no place.
    ///   - kept: names of subscriptions that must not end.
    package func room(for new: DevicePlace, keeping kept: (_ name: [UInt8]) -> Bool = { _ in false }) -> Room {
        // Claims are computed once each: that of a holder looks at all of its devices.
        let holders = Self.holders(of: places + [new]).map { (holder: $0, claim: Self.claim($0)) }.sorted { $0.claim < $1.claim }
        // A holder whose devices are all kept is passed over.
        for (holder, _) in holders {
            let losers = holder.enumerated().flatMap { index, devices in
                devices.filter { $0 == new || !kept($0.name) }.map { (place: $0, claim: Self.claim($0, index, in: holder)) }
            }
            guard let loser = losers.min(by: { $0.claim < $1.claim }) else { continue }
            return loser.place == new ? .none : .replacing(loser.place)
        }
        return .none
    }

    private static func holders(of places: [DevicePlace]) -> [Holder] {
        Dictionary(grouping: places, by: \.signer).flatMap { signer, devices in
            let signatures = signatures(of: devices)
            return signer == .account ? signatures.map { [$0] } : [signatures]
        }
    }

    private static func signatures(of devices: [DevicePlace]) -> [[DevicePlace]] {
        devices.sorted { $0.signedAt < $1.signedAt }.reduce(into: []) { signatures, device in
            if let latest = signatures.last?.last?.signedAt, device.signedAt - latest <= sameSignature {
                signatures[signatures.count - 1].append(device)
            } else {
                signatures.append([device])
            }
        }
    }

    // MARK: Claims

    /// The holder with the lowest claim loses a place.
    private static func claim(_ holder: Holder) -> (Int, Int, Int, Int64) {
        let devices = holder.joined()
        return (
            -devices.count, devices.first?.signer == .account ? 1 : 0, devices.contains(where: \.wasDelivered) ? 1 : 0,
            holder.last?.last?.signedAt ?? .min
        )
    }

    /// The device with the lowest claim within its holder loses its place.
    private static func claim(_ place: DevicePlace, _ signature: Int, in holder: Holder) -> (Int, Int, Int, Int64) {
        let isNewest = signature == holder.count - 1 && holder[signature].count == 1
        // `~` reverses the order like a minus sign, and is defined for all rows.
        return (place.wasDelivered || isNewest ? 1 : 0, -holder[signature].count, signature, ~place.row)
    }
}
