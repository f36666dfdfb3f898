import Storage

/// The statements of an exchange, of which those with the same text are sent as one that takes an array for each parameter:
///
///     SELECT … WHERE a = $1       ─▶  SELECT t.*, n FROM unnest($1) WITH ORDINALITY AS k(p1, n), LATERAL (SELECT … WHERE a = k.p1 OFFSET 0) AS t
///     INSERT … VALUES ($1, $2)    ─▶  INSERT … SELECT p1, p2 FROM unnest($1, $2) WITH ORDINALITY AS k(p1, p2, n) ORDER BY n
///     UPDATE … WHERE id = $1      ─▶  UPDATE … FROM unnest($1) WITH ORDINALITY AS k(p1, n) WHERE id = k.p1
///     DELETE … WHERE a = $1       ─▶  DELETE … WHERE a = ANY($1)
///
/// `OFFSET 0` keeps the plan of a single read, an index look-up for each row of arguments, whatever the server knows of the table. An update has the
/// plan of a join, which the server chooses by the size of the table at that time: see ``Writer/probe()``.
struct StatementGroups {
    /// The form of a statement for many rows of arguments.
    enum Form {
        case read
        /// Returns each row that it inserts.
        case insert
        /// An insertion that returns nothing.
        case write
        /// Changes one row.
        case update
        case delete
    }

    /// A group met a conflict. Sent one by one, its statements show which is the cause.
    struct Refused: Error {}

    /// Fewer statements take less time one by one.
    static let smallest = 8

    /// The statements to send.
    let statements: [Statement]
    /// For each statement to send, the indices of those that it stands for.
    let members: [[Int]]

    /// - Parameters:
    ///   - isGrouping: false to send each statement as it is.
    ///   - smallest: the number of statements from which they are grouped.
    init(_ all: [Statement], isGrouping: Bool, smallest: Int = Self.smallest) {
        var members: [[Int]] = []
        /// The latest group of each scope.
        var latest: [String: Int] = [:]
        for (index, statement) in all.enumerated() {
            guard isGrouping, let scope = statement.scope else {
                latest = [:]
                members.append([index])
                continue
            }
            if statement.form != nil, let group = latest[scope], all[members[group][0]].sql == statement.sql {
                members[group].append(index)
            } else {
                latest[scope] = members.count
                members.append([index])
            }
        }
        members = members.flatMap { $0.count < smallest ? $0.map { [$0] } : [$0] }
        self.members = members
        statements = members.map { $0.count == 1 ? all[$0[0]] : Statement(grouping: $0.map { all[$0] }) }
    }

    /// The result of each statement; changes that return no rows have none.
    ///
    /// - Parameter sent: the results of ``statements``.
    /// - Throws: ``Refused``
    func results(_ sent: [StatementResult]) throws -> [StatementResult] {
        var results = Array(repeating: StatementResult(), count: members.reduce(0) { $0 + $1.count })
        for (group, members) in members.enumerated() {
            guard members.count > 1 else {
                results[members[0]] = sent[group]
                continue
            }
            switch statements[group].form {
            case .read:
                for row in sent[group].rows {
                    let number = Int(try row.integer(row.values.count - 1))
                    results[members[number - 1]].rows.append(Row(Array(row.values.dropLast())))
                }
            case .insert:
                guard sent[group].rows.count == members.count else { throw Refused() }
                for (member, row) in zip(members, sent[group].rows) { results[member].rows = [row] }
            // Two statements for one row would change it once.
            case .update:
                guard sent[group].changedCount == members.count else { throw Refused() }
                for member in members { results[member].changedCount = 1 }
            case .write, .delete, nil: break
            }
        }
        return results
    }
}

extension Statement {
    /// - Parameter statements: some with the same text and a form.
    fileprivate init(grouping statements: [Statement]) {
        let first = statements[0]
        let numbers = first.kinds.indices.map { "\($0 + 1)" }
        func list(_ mark: String) -> String { numbers.map { mark + $0 }.joined(separator: ", ") }
        let rows = "unnest(\(list("$"))) WITH ORDINALITY AS k(\(list("p")), n)"
        let ofRow = first.sql.replacing("$", with: "k.p")
        let sql =
            switch first.form {
            case .read: "SELECT t.*, k.n FROM \(rows) CROSS JOIN LATERAL (\(ofRow) OFFSET 0) AS t"
            case .update: ofRow.replacing(" WHERE ", with: " FROM \(rows) WHERE ", maxReplacements: 1)
            case .delete: first.sql.replacing("$1", with: "ANY($1)")
            case .insert, .write, nil: first.sql.replacing("VALUES (\(list("$")))", with: "SELECT \(list("p")) FROM \(rows) ORDER BY n")
            }
        self.init(sql)
        form = first.form
        for position in numbers.indices { add(argument: position, of: statements) }
    }
}
