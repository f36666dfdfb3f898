import Storage
import Core

/// Final answers to messages, so that a repeated message gets the same answer.
enum AnswerStorage {
    private static let find = Query(StatusStorage.answer, [StatusStorage.codes], where: [.equal(StatusStorage.answered)])
    private static let insert = Mutation(
        StatusStorage.answer, .insertOrIgnore([StatusStorage.answered, StatusStorage.codes, StatusStorage.at]))
    static let rows = TimedRows(StatusStorage.answer, by: StatusStorage.at)

    /// Marks a message that another server has handled; that server's answer is unknown.
    static let handledElsewhere: [UInt8] = []

    /// The answer as one byte for each part, or ``handledElsewhere``; nil if there is no final answer.
    static func answer(to message: [UInt8]) -> StoreCommand<[UInt8]?> {
        .find(find(.bytes(message))) { .done(try $0.first?.bytes(0)) }
    }

    static func remember(_ codes: [UInt8], to message: [UInt8], at now: Timestamp) -> Change {
        insert(.bytes(message), .bytes(codes), .integer(now.rawValue))
    }
}
