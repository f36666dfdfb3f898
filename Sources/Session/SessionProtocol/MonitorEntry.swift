import WakuCrypto

/// One entry of `monitor.messages`: asks a storage server to report an account's messages for 65 minutes.
///
///     P Ed25519 key(32) of a session id, or p account(33)   S signature and T token of a subaccount   d 0/1   n namespaces   s signature   t sig_ts
package struct MonitorEntry: Sendable {
    package static let command = "monitor.messages"

    package let bytes: [UInt8]

    /// Entries for subscriptions in the published `subkey_tag` form have no `S` and `T`: storage servers have no field for the tag.
    package init(_ authority: SignedAuthority, namespaces: [Int16], wantsData: Bool) {
        var fields: BencodeDictionary = [
            "d": .integer(wantsData ? 1 : 0), "n": .list(namespaces.map { .integer(Int64($0)) }),
            "s": .bytes(authority.signature.value), "t": .integer(authority.signedAt),
        ]
        if let key = authority.sessionKey {
            fields["P"] = .bytes(key.bytes)
        } else {
            fields["p"] = .bytes(authority.account.bytes)
        }
        if case .subaccount(let token, let signature) = authority.delegation {
            fields["S"] = .bytes(signature.value)
            fields["T"] = .bytes(token.bytes)
        }
        bytes = BencodeValue.dictionary(fields).encoded()
    }

    /// The body of a request: a single entry, or a list of several. nil for no entries.
    package static func body(of entries: [MonitorEntry]) -> [UInt8]? {
        guard let first = entries.first else { return nil }
        guard entries.count > 1 else { return first.bytes }
        var body: [UInt8] = [UInt8(ascii: "l")]
        body.reserveCapacity(entries.reduce(2) { $0 + $1.bytes.count })
        for entry in entries { body += entry.bytes }
        body.append(UInt8(ascii: "e"))
        return body
    }
}

/// A storage server's answer to one entry of `monitor.messages`.
package enum MonitorOutcome: Hashable, Sendable {
    case success
    /// Newer servers send a hint with ``MonitorRefusal/wrongSwarm``.
    case refused(MonitorRefusal, SwarmHint? = nil)

    /// Parses the reply to a request: a dictionary, or a list with one for each entry.
    ///
    /// - Parameter count: The number of entries in the request.
    /// - Returns: nil unless the reply has an outcome for each entry.
    package static func outcomes(parsing bytes: [UInt8], count: Int) -> [MonitorOutcome]? {
        var reader = BencodeReader(bytes[...], maximumValueCount: .max)
        var hints = SwarmHintReader()
        var outcomes: [MonitorOutcome] = []
        outcomes.reserveCapacity(count)
        let isList = reader.takeListStart()
        do throws(BencodeValue.ParsingError) {
            while isList ? try !reader.takeEnd() : outcomes.isEmpty {
                guard outcomes.count < count, let outcome = try outcome(&reader, &hints) else { return nil }
                outcomes.append(outcome)
            }
        } catch {
            return nil
        }
        return outcomes.count == count && reader.rest.isEmpty ? outcomes : nil
    }

    private static let fields = ["success", "errcode", "swarm", "snodes"].map { Array($0.utf8) }

    /// Parses a dictionary with success, or with errcode, error and a hint; other keys are ignored.
    private static func outcome(
        _ reader: inout BencodeReader, _ hints: inout SwarmHintReader
    ) throws(BencodeValue.ParsingError) -> MonitorOutcome? {
        let fields = try reader.rawFields(named: fields)
        func integer(_ raw: ArraySlice<UInt8>?) -> Int64? { raw.flatMap { try? BencodeValue(parsing: $0, maximumValueCount: 1) }?.integer }
        if integer(fields[0]) == 1 { return .success }
        guard let code = integer(fields[1]) else { return nil }
        let refusal = MonitorRefusal(code: code)
        return .refused(refusal, refusal == .wrongSwarm ? hints.hint(swarm: fields[2], snodes: fields[3]) : nil)
    }
}

/// Why a storage server does not monitor an account, by its `errcode`.
package enum MonitorRefusal: String, Hashable, Sendable, CaseIterable {
    /// These have the codes 1 to 6, in this order.
    case arguments, pubkey, namespace, timestamp, signature
    case wrongSwarm = "wrong_swarm"
    /// Any other code, or an error of oxenmq.
    case other

    package init(code: Int64) {
        self = 1...6 ~= code ? Self.allCases[Int(code) - 1] : .other
    }

    /// 0 for ``other``.
    package var code: Int64 { self == .other ? 0 : Int64(Self.allCases.firstIndex(of: self) ?? 0) + 1 }
}
