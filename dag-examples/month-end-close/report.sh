# The report pack of one batch: reads only its environment, writes only into the private temporary
# folder it starts in. POSIX sh.
set -eu

pack=report-$PROCESSION_BATCH_NO.txt
{
    echo "Month-end close $PROCESSION_BATCH_NO, period ended $PROCESSION_PARAM_PERIOD_END"
    echo "月末结账报表"
    echo "------------------------------------------------"
    printf '%-20s %20s\n' 'Net income' "$PROCESSION_PARAM_NET_INCOME"
    printf '%-20s %20s\n' 'Total assets' "$PROCESSION_PARAM_TOTAL_ASSETS"
    printf '%-20s %20s\n' 'Journal lines' "$PROCESSION_PARAM_JOURNAL_LINES"
} > "$pack"
cat "$pack"

# Return on assets of the month, in per cent.
roa=$(LC_ALL=C awk -v n="$PROCESSION_PARAM_NET_INCOME" -v a="$PROCESSION_PARAM_TOTAL_ASSETS" \
    'BEGIN { printf "%.2f", a == 0 ? 0 : 100 * n / a }')
echo "Return on assets: $roa %"

# $(( )) drops the blanks that some wc put before the number.
echo "::output lines=$(( $(wc -l < "$pack") ))"
echo "::output return_on_assets=$roa"
