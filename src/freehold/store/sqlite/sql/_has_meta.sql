-- Every pair of the filter is in the job's metadata. true is stored as 1, so types are compared, too; numbers
-- are equal by value, whether they have a fraction or not.
json_valid(l.meta) and not exists (
          select 1 from json_each(:meta) f
          where not exists (
              select 1 from json_each(l.meta) m
              where m.key = f.key and m.atom is f.atom
                and (m.type = f.type or (m.type in ('integer', 'real') and f.type in ('integer', 'real')))))
