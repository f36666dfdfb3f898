import StatusProtocol
import Storage
import Core
import WakuCrypto

/// Final acknowledgements, so that a repeated request gets the same acknowledgement.
enum V01Answers {
    private static let find = Query(V01Storage.answer, [V01Storage.code], where: [.equal(V01Storage.request)])
    private static let insert = Mutation(V01Storage.answer, .insertOrIgnore([V01Storage.request, V01Storage.code, V01Storage.at]))
    static let rows = TimedRows(V01Storage.answer, by: V01Storage.at)
    private static let success: Int64 = 255

    /// Identifies a request by its payload, because the same request may arrive in another envelope.
    ///
    /// - Parameter server: the identity to which it was sent.
    static func key(of request: [UInt8], to server: ServerMark?) -> [UInt8] {
        let key = SHA3.hash256(request)
        return server.map { SHA3.hash256(key + $0.bytes) } ?? key
    }

    /// The final acknowledgement of a request, which may be success (nil); nil if there is none.
    static func answer(to request: [UInt8]) -> StoreCommand<V01.Acknowledgement.ErrorType??> {
        .find(find(.bytes(request))) { rows in
            guard let code = try rows.first?.integer(0) else { return .done(nil) }
            return .done(.some(code == success ? nil : UInt32(exactly: code).flatMap(V01.Acknowledgement.ErrorType.init) ?? .unknown))
        }
    }

    static func remember(_ error: V01.Acknowledgement.ErrorType?, to request: [UInt8], at now: Timestamp) -> Change {
        insert(.bytes(request), .integer(error.map { Int64($0.rawValue) } ?? success), .integer(now.rawValue))
    }
}
